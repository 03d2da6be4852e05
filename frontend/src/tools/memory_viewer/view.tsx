/**
 * The memory viewer from top to bottom: program and space, tiles, contents of the peak, memory over the
 * program, advice, tables.
 */
import type { VNode } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { readNumber, readTable, readTiles, type ColumnOf, type RowsOf } from '../../api/declared';
import { isSameTable } from '../../api/table';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { format, plural } from '../../base/units';
import { RichText } from '../../widgets/rich_text';
import { Segments } from '../../widgets/segments';
import { Section, Tiles } from '../../widgets/summary';
import { parseView, PLAIN_VIEW, viewChange } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { idleColumns, tableData, type ToolProps } from '../tool';
import { Card } from './card';
import {
  buffersOf,
  colorsOf,
  keptOf,
  pointsOf,
  programOf,
  programsOf,
  SCALARS,
  spacesOf,
  stepsOf,
  TABLES,
  type Buffer,
  type Colors,
} from './model';
import { OrderCharts } from './order';
import { Strip } from './strip';
import './style.css';

type LinkProps = Pick<ToolProps, 'params' | 'setParams'>;

type BufferRows = RowsOf<typeof TABLES.live>;
type BufferColumn = ColumnOf<typeof TABLES.live>;

const HIDDEN_AT_FIRST: readonly BufferColumn[] = [
  'buffer_id',
  'opcode',
  'padding_bytes',
  'padded_dimensions',
  'allocation',
  'offset_bytes',
  'is_at_peak',
  'stack',
];
const LARGEST_FIRST: { column: BufferColumn; descending: boolean } = {
  column: 'size_bytes',
  descending: true,
};
const TOTALS: readonly BufferColumn[] = ['size_bytes', 'unpadded_bytes', 'padding_bytes'];
const MONO: readonly BufferColumn[] = ['instruction', 'shape', 'op_name'];
/** Parameters that apply to one program and space only. */
const OF_SPACE = { buffer: undefined, op: undefined, first_step: undefined, last_step: undefined };

function Chooser({ payload, setParams }: { payload: Payload } & Pick<LinkProps, 'setParams'>): VNode {
  const programs = useMemo(() => programsOf(payload), [payload]);
  const spaces = useMemo(() => spacesOf(payload), [payload]);
  return (
    <div class="mv-chooser">
      <label>
        Program{' '}
        <select
          class="field"
          value={programOf(payload)}
          onChange={(event) =>
            setParams({ program: event.currentTarget.value, space: undefined, ...OF_SPACE }, 'push')
          }
        >
          {programs.map(({ title, peakBytes }) => (
            <option key={title} value={title}>
              {peakBytes === null ? title : `${title} · ${format(peakBytes, 'bytes')}`}
            </option>
          ))}
        </select>
      </label>
      {spaces.length > 1 && (
        <Segments
          label="Memory space"
          choices={spaces.map(({ value, title }) => ({ name: value, title }))}
          chosen={String(readNumber(payload, SCALARS.space) ?? 0)}
          onChoose={(space) => setParams({ space: space === '0' ? undefined : space, ...OF_SPACE }, 'push')}
        />
      )}
    </div>
  );
}

function Key({ colors }: { colors: Colors }): VNode {
  return (
    <ul class="mv-key" aria-label="Colors">
      {colors.legend.map(({ name, token }) => (
        <li key={name}>
          <span class="dot" style={{ background: `var(${token})` }} />
          {name}
        </li>
      ))}
    </ul>
  );
}

function Advice({ payload }: { payload: Payload }): VNode | null {
  const rows = readTable(payload, TABLES.advice);
  if (!rows.length) return null;
  return (
    <Section title={rows.table.title} note="largest saving first; each on its own, as an upper bound">
      <ol class="mv-advice">
        {rows.all().map(({ text, saves_bytes }, i) => (
          <li key={i}>
            <b>{format(saves_bytes, 'bytes')}</b>
            <span>
              <RichText text={text} />
            </span>
          </li>
        ))}
      </ol>
    </Section>
  );
}

function LiveTable({
  table,
  params,
  setParams,
  chosen,
  onPick,
}: { table: PayloadTable; chosen: number; onPick: (row: number) => void } & LinkProps): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const initial = useMemo(
    () => ({
      ...PLAIN_VIEW,
      sort: LARGEST_FIRST,
      hidden: new Set([...HIDDEN_AT_FIRST, ...idleColumns(data)].filter((name) => name !== 'instruction')),
    }),
    [data],
  );
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  return (
    <Table
      data={data}
      label={table.title}
      view={view}
      onView={(next, how) => setParams(viewChange(view, next, initial), how)}
      totals={TOTALS}
      mono={MONO}
      onRow={onPick}
      chosenRow={chosen}
      rowsInFull={15}
      maxHeight="460px"
    />
  );
}

function Allocations({ table }: { table: PayloadTable }): VNode {
  const data = useMemo(() => tableData(table), [table]);
  return (
    <Section
      title={table.title}
      note="requested by the compiler from the device; buffers share temporary ones over time"
    >
      <Table
        data={data}
        label={table.title}
        hasToolbar={table.n_rows > 10}
        rowsInFull={10}
        maxHeight="300px"
      />
    </Section>
  );
}

interface Chosen {
  marked: Buffer | null;
  hover: (buffer: Buffer | null) => void;
  pick: (buffer: Buffer | null) => void;
}

function Course({
  payload,
  blocks,
  colors,
  chosen,
  setParams,
}: { payload: Payload; blocks: readonly Buffer[]; colors: Colors; chosen: Chosen } & Pick<
  LinkProps,
  'setParams'
>): VNode {
  const points = useMemo(() => pointsOf(payload), [payload]);
  const steps = useMemo(() => stepsOf(payload), [payload]);
  const nSteps = readNumber(payload, SCALARS.n_steps) ?? 0;
  const leftOut = readNumber(payload, SCALARS.n_blocks_left_out) ?? 0;
  if (!nSteps) {
    return (
      <Section title="Memory over program order">
        <p class="muted prose">
          No lifetimes to show: the program has no temporaries in this space, or its HLO has no schedule.
        </p>
      </Section>
    );
  }
  return (
    <Section
      title="Memory over program order"
      note={`dashed: without padding${leftOut ? `; ${plural(leftOut, 'small block')} not drawn: zoom in` : ''}`}
    >
      <OrderCharts
        points={points}
        blocks={blocks}
        steps={steps}
        nSteps={nSteps}
        peakStep={readNumber(payload, SCALARS.peak_step)}
        peakBytes={readNumber(payload, SCALARS.peak_bytes) ?? 0}
        permanentBytes={readNumber(payload, SCALARS.permanent_bytes) ?? 0}
        temporaryBytes={readNumber(payload, SCALARS.temporary_allocated_bytes) ?? 0}
        marked={chosen.marked}
        colors={colors}
        onHover={chosen.hover}
        onPick={chosen.pick}
        onSteps={(change) => setParams(change, 'replace')}
      />
    </Section>
  );
}

/** The value as it was first given, until it changes. */
function useKept<T>(given: T, isSame: (one: T, other: T) => boolean): T {
  const kept = useRef(given);
  if (kept.current !== given && !isSame(kept.current, given)) kept.current = given;
  return kept.current;
}

function isSameRows({ table: one }: BufferRows, { table: other }: BufferRows): boolean {
  return isSameTable(one, other);
}

export function MemoryViewerView({ payload, params, setParams }: { payload: Payload } & LinkProps): VNode {
  // Zooming into steps requests other blocks; the contents of the peak stay, and are not redrawn.
  const liveRows = useKept(
    useMemo(() => readTable(payload, TABLES.live), [payload]),
    isSameRows,
  );
  const { table: liveTable } = liveRows;
  const allocations = useKept(readTable(payload, TABLES.allocations).table, isSameTable);
  const live = useMemo(() => buffersOf(liveRows), [liveRows]);
  const blocks = useMemo(() => buffersOf(readTable(payload, TABLES.blocks)), [payload]);
  const colors = useMemo(() => colorsOf([live, blocks]), [live, blocks]);
  const [hovered, setHovered] = useState<Buffer | null>(null);
  const pinned = useMemo(
    () => keptOf([...live, ...blocks], params),
    [live, blocks, params['buffer'], params['op']],
  );
  const largest = useMemo(
    () =>
      live.reduce<Buffer | null>(
        (best, buffer) => (best && best.sizeBytes >= buffer.sizeBytes ? best : buffer),
        null,
      ),
    [live],
  );
  const pick = (buffer: Buffer | null): void =>
    setParams(
      { op: undefined, buffer: buffer && buffer.id !== pinned?.id ? String(buffer.id) : undefined },
      'push',
    );
  const chosen: Chosen = { marked: hovered ?? pinned, hover: setHovered, pick };
  const strip = { buffers: live, colors, marked: chosen.marked, onHover: setHovered, onPick: pick };
  // Independent of the pointer.
  const chooser = useMemo(() => <Chooser payload={payload} setParams={setParams} />, [payload]);
  const tables = useMemo(
    () => (
      <>
        {liveTable.n_rows > 0 && (
          <Section title={liveTable.title} note={liveTable.note || 'click a row to highlight its lifetime'}>
            <LiveTable
              table={liveTable}
              params={params}
              setParams={setParams}
              chosen={live.findIndex(({ id }) => id === pinned?.id)}
              onPick={(row) => pick(live[row] ?? null)}
            />
          </Section>
        )}
        {allocations.n_rows > 0 && <Allocations table={allocations} />}
      </>
    ),
    [liveTable, allocations, live, pinned, params],
  );
  return (
    <>
      {chooser}
      {params['op'] && !params['buffer'] && !pinned && (
        <p class="muted prose">
          No buffer at the peak or on the map belongs to <code>{params['op']}</code>: its result is small, is
          in another memory space, or shares another buffer's memory.
        </p>
      )}
      <Tiles tiles={readTiles(payload)} />
      {live.length > 0 && (
        <div class="mv-body">
          <div class="tool-page">
            <Section
              title="What occupies memory at the peak"
              tip="Every buffer held at the peak, each as wide as it is large"
              note={plural(live.length, 'buffer')}
              end={<Key colors={colors} />}
            >
              <Strip title="In program order, parameters first" order="program" {...strip} />
              <Strip title="By size" order="size" {...strip} />
            </Section>
            <Course {...{ payload, blocks, colors, chosen, setParams }} />
            <Advice payload={payload} />
          </div>
          <Card
            buffer={chosen.marked ?? largest}
            program={programOf(payload)}
            isKept={pinned !== null && !hovered}
            onClear={() => pick(pinned)}
          />
        </div>
      )}
      {tables}
    </>
  );
}
