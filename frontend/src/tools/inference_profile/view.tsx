/**
 * Inference from top to bottom: tiles, models, latency and its parts, tokens, what limits the device, batch
 * sizes, prefill and decode, requests, tokens of requests, batches, groups.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readIfAny, readTable, readTiles } from '../../api/declared';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { Segments } from '../../widgets/segments';
import { Section, Tiles } from '../../widgets/summary';
import type { TableColumn } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { useTableView } from '../table_view';
import { inOrder, tableData, type ToolProps } from '../tool';
import { Histogram, Sizes } from './charts';
import {
  histogramOf,
  idleSides,
  mixOf,
  mixText,
  modelsOf,
  onTimeline,
  SIDES,
  sizesOf,
  TABLES,
  type Side,
} from './model';
import './style.css';

type LinkProps = Pick<ToolProps, 'params' | 'setParams'>;
type ViewProps = { payload: Payload } & LinkProps;

/** Room for the bar beside a latency. */
const MIX_PX = 168;
const MAIN: readonly string[] = ['request', 'start_ps', 'latency_ps', ...SIDES.map(({ column }) => column)];
const FINER = [
  'host_before_ps',
  'host_runtime_ps',
  'host_after_ps',
  'to_device_ps',
  'to_host_ps',
  'low_ps',
  'high_ps',
];

type Cells = Record<Side['column'] | 'latency_ps', number | null>;

/** Reads the times of a row of a table that has all sides. */
function timesOf(table: PayloadTable): (row: number) => Cells {
  const data = tableData(table);
  const cells = new Map(data.columns.map((column) => [column.name, column.cell]));
  const at = (name: string, row: number): number | null => {
    const cell = cells.get(name)?.(row);
    return typeof cell === 'number' && Number.isFinite(cell) ? cell : null;
  };
  return (row) => ({
    latency_ps: at('latency_ps', row),
    host_ps: at('host_ps', row),
    queue_ps: at('queue_ps', row),
    transfer_ps: at('transfer_ps', row),
    device_ps: at('device_ps', row),
    wait_ps: at('wait_ps', row),
  });
}

function Mix({ times, longestPs, text }: { times: Cells; longestPs: number; text: string }): VNode {
  return (
    <span class="latency-mix" data-tip={mixText(times)}>
      <b>{text}</b>
      <span class="mix" aria-hidden="true">
        {mixOf(times, longestPs).map(({ token, fraction }) => (
          <i key={token} style={{ width: `${fraction * 100}%`, background: `var(${token})` }} />
        ))}
      </span>
    </span>
  );
}

function PartLegend({ idle }: { idle: readonly string[] }): VNode {
  return (
    <p class="part-legend">
      {SIDES.filter(({ column }) => !idle.includes(column)).map(({ column, title, token }) => (
        <span key={column}>
          <i class="dot" style={{ background: `var(${token})` }} /> {title}
        </span>
      ))}
    </p>
  );
}

/** A table of requests with bars of their parts, and links to their place on the timeline. */
function RequestTable({
  name,
  table,
  hidden,
  hasToolbar,
  params,
  setParams,
}: { name: string; table: PayloadTable; hidden: readonly string[]; hasToolbar: boolean } & LinkProps): VNode {
  const data = useMemo(() => {
    const ordered = name === 'requests' ? inOrder(tableData(table), MAIN) : tableData(table);
    const columns = ordered.columns.map((column) =>
      column.name === 'latency_ps' ? { ...column, extraPx: MIX_PX } : column,
    );
    return { ...ordered, columns };
  }, [table, name]);
  const [view, setView] = useTableView(name, { params, setParams }, data, { hidden });
  const times = useMemo(() => timesOf(table), [table]);
  const longestPs = useMemo(
    () =>
      Array.from({ length: table.n_rows }, (_, row) => times(row).latency_ps ?? 0).reduce(
        (a, b) => Math.max(a, b),
        0,
      ),
    [table, times],
  );
  const linked = name === 'requests' ? 'request' : 'percentile';
  const cellOf = (column: string, row: number): unknown =>
    data.columns.find((one) => one.name === column)?.cell(row);
  const render = (column: TableColumn, row: number, text: string): VNode | undefined => {
    if (column.name === 'latency_ps') return <Mix times={times(row)} longestPs={longestPs} text={text} />;
    if (column.name !== linked || !canOpen('trace_viewer')) return undefined;
    const start = cellOf('start_ps', row);
    const place = onTimeline(
      String(cellOf('host', row) ?? ''),
      typeof start === 'number' && Number.isFinite(start) ? start : null,
      times(row).latency_ps,
    );
    if (!place) return undefined;
    return (
      <button
        type="button"
        class="text-link"
        data-tip="Show it on the timeline"
        onClick={() => openTool('trace_viewer', place)}
      >
        {linked === 'request' ? `#${text}` : text}
      </button>
    );
  };
  return (
    <Table
      data={data}
      label={table.title}
      view={view}
      onView={setView}
      hasToolbar={hasToolbar}
      mono={['model', 'pattern']}
      prose={['percentile']}
      maxHeight="420px"
      render={render}
    />
  );
}

const NOTHING: readonly string[] = [];

/** A table of groups or batches as it is. */
function PlainTable({
  name,
  table,
  hidden = NOTHING,
  ...link
}: { name: string; table: PayloadTable; hidden?: readonly string[] } & LinkProps): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const [view, setView] = useTableView(name, link, data, { hidden });
  return (
    <Table
      data={data}
      label={table.title}
      view={view}
      onView={setView}
      hasToolbar={table.n_rows > 10}
      rowsInFull={12}
      maxHeight="360px"
      mono={['model', 'pattern']}
      barToken="--c-compute"
    />
  );
}

/** The note gives the reason that all rows share. */
const SAID_BY_NOTE = ['reason'];
const HIDDEN_PERCENTILE = [...FINER, 'request', 'start_ps', 'host'];
const HIDDEN_REQUEST = [...FINER, 'n_in_batch', 'host'];

function LatencySection({ payload, params, setParams }: ViewProps): VNode {
  const drawing = useMemo(() => histogramOf(payload), [payload]);
  const percentiles = readTable(payload, TABLES.percentiles).table;
  const idle = useMemo(() => idleSides(payload), [payload]);
  const hidden = useMemo(() => [...HIDDEN_PERCENTILE, ...idle], [idle]);
  return (
    <div class="inference-columns">
      {drawing && (
        <Section title="Latency" note={drawing.note}>
          <Histogram drawing={drawing} />
        </Section>
      )}
      <Section title={percentiles.title} note={percentiles.note} tip={percentiles.description}>
        <PartLegend idle={idle} />
        <RequestTable
          name="percentiles"
          table={percentiles}
          hidden={hidden}
          hasToolbar={false}
          params={params}
          setParams={setParams}
        />
      </Section>
    </div>
  );
}

function SizeAndPhase({ payload, params, setParams }: ViewProps): VNode {
  const sizes = useMemo(() => sizesOf(payload), [payload]);
  const sizesTable = readIfAny(payload, TABLES.sizes)?.table;
  const phases = readIfAny(payload, TABLES.phases)?.table;
  const isDrawn = sizes && (sizes.bars.length > 1 || sizes.hasPadding);
  return (
    <>
      {phases && (
        <Section title={phases.title} tip={phases.description}>
          <PlainTable name="phases" table={phases} params={params} setParams={setParams} />
        </Section>
      )}
      {sizesTable && (
        <Section
          title={sizesTable.title}
          tip={sizesTable.description}
          {...(isDrawn ? { note: sizes.note } : {})}
        >
          <div class="inference-columns sizes">
            {isDrawn && <Sizes drawing={sizes} />}
            <PlainTable name="sizes" table={sizesTable} params={params} setParams={setParams} />
          </div>
        </Section>
      )}
    </>
  );
}

/** Whether a rate of the device is known; else the verdict says why none is. */
function saysAny(payload: Payload): boolean {
  const loads = readIfAny(payload, TABLES.loads)?.all() ?? [];
  return loads.some(({ flops_per_s: flops, bytes_per_s: bytes }) => flops !== null || bytes !== null);
}

/** Tokens, and what limits the device while it works. */
function TokensAndLoads({ payload, params, setParams }: ViewProps): VNode | null {
  const tables = {
    tokens: readIfAny(payload, TABLES.tokens)?.table,
    loads: saysAny(payload) ? readIfAny(payload, TABLES.loads)?.table : undefined,
  };
  if (!tables.tokens && !tables.loads) return null;
  return (
    <div class="inference-columns">
      {Object.entries(tables).map(([name, table]) =>
        table ? (
          <Section key={name} title={table.title} note={table.note} tip={table.description}>
            <PlainTable
              name={name}
              table={table}
              {...(table.note ? { hidden: SAID_BY_NOTE } : {})}
              params={params}
              setParams={setParams}
            />
          </Section>
        ) : null,
      )}
    </div>
  );
}

/** Up to this many models stand side by side; more are a list. */
const MODELS_SIDE_BY_SIDE = 6;

function ModelChoice({
  models,
  chosen,
  onChoose,
}: {
  models: readonly { name: string; title: string }[];
  chosen: string;
  onChoose: (model: string) => void;
}): VNode {
  if (models.length <= MODELS_SIDE_BY_SIDE)
    return <Segments label="Model" choices={models} chosen={chosen} onChoose={onChoose} />;
  return (
    <label class="model-choice">
      Model
      <select
        class="field"
        aria-label="Model"
        value={chosen}
        onChange={(event) => onChoose(event.currentTarget.value)}
      >
        {models.map(({ name, title }) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

export function InferenceView({ payload, params, setParams }: ViewProps): VNode {
  const models = useMemo(() => modelsOf(payload), [payload]);
  const requests = readTable(payload, TABLES.requests).table;
  const idle = useMemo(() => idleSides(payload), [payload]);
  const hidden = useMemo(() => [...HIDDEN_REQUEST, ...idle], [idle]);
  const rest = ['generations', 'batches', 'batch_percentiles', 'models', 'patterns'] as const;
  const link = { params, setParams };
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      {models.length > 0 && (
        <ModelChoice
          models={models}
          chosen={params['model'] ?? ''}
          onChoose={(model) => setParams({ model: model || undefined }, 'push')}
        />
      )}
      <LatencySection payload={payload} {...link} />
      <TokensAndLoads payload={payload} {...link} />
      <SizeAndPhase payload={payload} {...link} />
      <Section title={requests.title} note={requests.note} tip={requests.description}>
        <RequestTable name="requests" table={requests} hidden={hidden} hasToolbar {...link} />
      </Section>
      {rest.map((name) => {
        const table = payload.tables[name];
        const least = name === 'models' || name === 'patterns' ? 2 : 1;
        return table && table.n_rows >= least ? (
          <Section key={name} title={table.title} note={table.note} tip={table.description}>
            <PlainTable name={name} table={table} hidden={idle} {...link} />
          </Section>
        ) : null;
      })}
    </>
  );
}
