/**
 * Numbers of one memory, all memories beside one another, the history, what is in use at the peak or another
 * moment, the floor.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { scalarNumber } from '../../api/table';
import type { Payload, Scalar, Table as PayloadTable } from '../../api/types';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { Section, Tiles } from '../../widgets/summary';
import { Tail } from '../../widgets/tail';
import {
  parseView,
  PLAIN_VIEW,
  viewChange,
  type TableColumn,
  type TableData,
} from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { idleColumns, tableData, type ToolProps } from '../tool';
import { FloorSection } from './floor';
import { HistorySection } from './history';
import { MemoriesSection } from './memories';
import { memoriesOf } from './model';
import './style.css';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;

const TILES = ['peak_bytes', 'lifetime_peak_bytes', 'capacity_bytes', 'n_allocations', 'n_deallocations'];
const PEAK_TILES = ['peak_ps', 'stack_bytes', 'heap_bytes', 'free_bytes', 'fragmentation_fraction'];
const HIDDEN_AT_FIRST = ['event', 'requested_bytes'];

/** Totals are set in bold: they need more room than the cells above. */
function roomForTotals(data: TableData): TableData {
  return {
    ...data,
    columns: data.columns.map((column) =>
      column.name === 'total_bytes' ? { ...column, extraPx: 16 } : column,
    ),
  };
}

function tilesOf(payload: Payload, names: readonly string[]): Scalar[] {
  return names.flatMap((name) => payload.scalars[name] ?? []);
}

function ActiveTable({
  table,
  host,
  params,
  setParams,
}: { table: PayloadTable; host: string } & ViewProps): VNode {
  const data = useMemo(() => roomForTotals(tableData(table)), [table]);
  const initial = useMemo(
    () => ({
      ...PLAIN_VIEW,
      hidden: new Set([...HIDDEN_AT_FIRST, ...idleColumns(data).filter((name) => name !== 'op')]),
    }),
    [data],
  );
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const cell = (name: string, row: number): number | null => {
    const value = data.columns.find((column) => column.name === name)?.cell(row);
    return typeof value === 'number' ? value : null;
  };
  const render = (column: TableColumn, row: number, text: string): VNode | undefined => {
    if (column.name === 'op' && !text.startsWith('(')) return <Tail text={text} />;
    const [start, event] = [cell('start_ps', row), cell('event', row)];
    if (column.name !== 'start_ps' || start === null || event === null || !canOpen('trace_viewer'))
      return undefined;
    const around = {
      start_ps: String(Math.max(0, start - 1e9)),
      end_ps: String(start + 1e9),
      event: String(event),
    };
    return (
      <button
        type="button"
        class="text-link"
        data-tip={`${text}: see this allocation on the timeline`}
        onClick={() => openTool('trace_viewer', { hosts: host, ...around })}
      >
        {text}
      </button>
    );
  };
  return (
    <Table
      data={data}
      label={table.title}
      view={view}
      onView={(next, how) => setParams(viewChange(view, next, initial), how)}
      totals={['total_bytes', 'fraction', 'n_occurrences']}
      mono={['op', 'shape']}
      barToken="--q-0"
      render={render}
    />
  );
}

export function MemoryProfileView({ payload, params, setParams }: { payload: Payload } & ViewProps): VNode {
  const { timeline, active, floor, memories: table } = payload.tables;
  const memories = useMemo(() => memoriesOf(payload), [payload]);
  const chosen = scalarNumber(payload, 'row') ?? 0;
  const memory = memories[chosen];
  const tracePs = scalarNumber(payload, 'trace_duration_ps') ?? 1;
  const choose = (name: string): void =>
    setParams({ memory: name, start_ps: undefined, end_ps: undefined, at_ps: undefined }, 'push');
  const back =
    params['at_ps'] === undefined ? undefined : (
      <button type="button" class="button small" onClick={() => setParams({ at_ps: undefined }, 'push')}>
        Back to the peak
      </button>
    );
  return (
    <>
      {memories.length > 1 && (
        <label class="mp-choice">
          Memory
          <select
            class="field"
            value={memory?.fullName}
            onChange={(event) => choose(event.currentTarget.value)}
          >
            {memories.map(({ fullName, name, host }) => (
              <option key={fullName} value={fullName}>
                {payload.hosts.length > 1 ? `${name} on ${host}` : name}
              </option>
            ))}
          </select>
        </label>
      )}
      <div>
        <Tiles tiles={tilesOf(payload, TILES)} />
        <Tiles tiles={tilesOf(payload, PEAK_TILES)} />
      </div>
      {timeline && (
        <HistorySection
          key={memory?.fullName}
          payload={payload}
          timeline={timeline}
          memory={memory}
          setParams={setParams}
        />
      )}
      {active && (
        <Section title={active.title} note="identical allocations are grouped" end={back}>
          <ActiveTable table={active} host={memory?.host ?? ''} params={params} setParams={setParams} />
        </Section>
      )}
      {floor && <FloorSection table={floor} riseBytes={memory?.floorRise ?? 0} />}
      {table && memories.length > 1 && (
        <MemoriesSection
          memories={memories}
          table={table}
          chosen={chosen}
          tracePs={tracePs}
          onChoose={choose}
        />
      )}
    </>
  );
}
