/** Numbers, each step with its hidden and exposed parts, one step drawn, operations, devices. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { fetchPayload, payloadUrl } from '../../api/client';
import { readNumber, readTable, readTiles, type RowsOf } from '../../api/declared';
import type { Payload } from '../../api/types';
import { plural } from '../../base/units';
import { useLoaded } from '../../state/payload';
import { openTool } from '../../state/selection';
import { Section, Tiles } from '../../widgets/summary';
import { parseView, PLAIN_VIEW, viewChange, type TableColumn } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { StepSection } from '../step_section';
import { stepNames } from '../steps';
import { useTableView } from '../table_view';
import { idleColumns, inOrder, tableData, type ToolProps } from '../tool';
import {
  mixesOf,
  PICTURE,
  pictureOf,
  queryOf,
  rowOf,
  STEP_PARTS,
  TABLES,
  type Mix,
  type OpRows,
} from './model';
import { StepPicture } from './picture';
import './style.css';

type ViewProps = ToolProps & { payload: Payload };
type Steps = RowsOf<typeof TABLES.steps>;
type Devices = RowsOf<typeof TABLES.devices>;
/** Room for the bar next to the total, and for most of a name. */
const EXTRA_PX: Readonly<Record<string, number>> = { total_ps: 104 };
const FEW_OPS = 15;
const FEW_DEVICES = 4;
const ORDER = [
  'op',
  'group',
  'size_bytes',
  'bytes_per_s',
  'bus_bytes_per_s',
  'total_ps',
  'hidden_ps',
  'exposed_ps',
  'exposed_fraction',
  'wait_ps',
  'last',
];
/** Shown on demand: what most readers need not see. */
const HIDDEN = [
  'remark',
  'kind',
  'traffic',
  'exposed_fraction',
  'last_fraction',
  'n_hidden',
  'n_partly',
  'n_exposed',
  'elapsed_ps',
  'n_per_step',
];
type LegendEntry = readonly [kind: string, title: string];
const OF_PICTURE: readonly LegendEntry[] = [
  ['compute', 'Compute'],
  ['hidden', 'Hidden'],
  ['partly', 'Partly hidden'],
  ['exposed', 'Exposed'],
];
const OF_OPERATIONS = [...OF_PICTURE.slice(1), ['waiting', 'Waiting']] as const;

function ColorLegend({ entries }: { entries: readonly LegendEntry[] }): VNode {
  return (
    <ul class="legend comm-legend" aria-label="Colors">
      {entries.map(([kind, title]) => (
        <li key={kind}>
          <span class={`comm-dot ${kind}`} /> {title}
        </li>
      ))}
    </ul>
  );
}

function Choice({
  label,
  value,
  options,
  onChoose,
}: {
  label: string;
  value: number;
  options: readonly { row: number; title: string }[];
  onChoose: (row: number) => void;
}): VNode | null {
  if (options.length < 2) return null;
  return (
    <label>
      {label}{' '}
      <select class="field" value={value} onChange={(event) => onChoose(Number(event.currentTarget.value))}>
        {options.map(({ row, title }) => (
          <option key={row} value={row}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

/** One step on one device, requested by itself; the former picture stays until the next one is there. */
function OneStep(props: ViewProps & { steps: Steps; devices: Devices }): VNode | null {
  const { info, run, hosts, params, setParams, steps, devices } = props;
  const chosen = { device: rowOf(params['device']), step: rowOf(params['step']) };
  const asked = Object.fromEntries(Object.entries(chosen).map(([name, row]) => [name, String(row)]));
  const query = { tool: info.name, question: 'step', run, hosts, params: asked };
  const { data, error } = useLoaded(payloadUrl(query, 'json'), `${run}\nstep`, (abort) =>
    fetchPayload(query, 'json', abort),
  );
  const boxes = useMemo(() => (data ? readTable(data, PICTURE.tables.boxes) : null), [data]);
  const picture = useMemo(() => (boxes ? pictureOf(boxes) : null), [boxes]);
  const deviceRows = useMemo(() => {
    const [row, title] = [devices.number('device_row'), devices.text('device')];
    return Array.from({ length: devices.length }, (_, i) => ({ row: row(i) ?? i, title: title(i) }));
  }, [devices]);
  const stepRows = useMemo(() => stepNames(steps).map((title, row) => ({ row, title })), [steps]);
  if (error) return <p class="muted">{error.message}</p>;
  const shown = data
    ? {
        device: readNumber(data, PICTURE.scalars.device) ?? 0,
        step: readNumber(data, PICTURE.scalars.step) ?? 0,
        totalPs: readNumber(data, PICTURE.scalars.step_ps) ?? 0,
      }
    : { device: 0, step: 0, totalPs: 0 };
  return (
    <Section
      title={boxes?.table.title ?? 'One step on one device'}
      tip="What a device does in a step, with its operations cut where compute begins and ends"
      note={boxes?.note ?? ''}
      end={<ColorLegend entries={OF_PICTURE} />}
    >
      <div class="comm-choices">
        <Choice
          label="Device"
          value={shown.device}
          options={deviceRows}
          onChoose={(device) => setParams({ device: String(device) }, 'push')}
        />
        <Choice
          label="Step"
          value={shown.step}
          options={stepRows}
          onChoose={(step) => setParams({ step: String(step) }, 'push')}
        />
      </div>
      {picture && (
        <StepPicture picture={picture} totalPs={shown.totalPs} label={boxes?.table.title ?? 'One step'} />
      )}
    </Section>
  );
}

function MixBar({ hidden, exposed, waiting, text }: Mix): VNode {
  const part = (kind: string, share: number): VNode | null =>
    share > 0 ? <i class={kind} style={{ width: `${share * 100}%` }} /> : null;
  return (
    <span class="comm-mix" data-tip={text}>
      {part(exposed + waiting > 0 ? 'partly' : 'hidden', hidden)}
      {part('exposed', exposed)}
      {part('waiting', waiting)}
    </span>
  );
}

function Operations({
  ops,
  params,
  setParams,
}: { ops: OpRows } & Pick<ToolProps, 'params' | 'setParams'>): VNode {
  const { table } = ops;
  const data = useMemo(() => {
    const ordered = inOrder(tableData(table), ORDER);
    return {
      ...ordered,
      columns: ordered.columns.map((column) =>
        column.name in EXTRA_PX ? { ...column, extraPx: EXTRA_PX[column.name] ?? 0 } : column,
      ),
    };
  }, [table]);
  const initial = useMemo(
    () => ({ ...PLAIN_VIEW, hidden: new Set([...HIDDEN, ...idleColumns(data)]) }),
    [data],
  );
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const mixes = useMemo(() => mixesOf(ops), [ops]);
  const remark = ops.text('remark');
  const render = (column: TableColumn, row: number, text: string, full: string): VNode | undefined => {
    if (column.name === 'op')
      return (
        <span
          class="text-link"
          data-tip={[full, remark(row), 'Find it in the trace viewer'].filter(Boolean).join('\n')}
        >
          {text}
        </span>
      );
    const mix = mixes[row];
    if (column.name !== 'total_ps' || !mix) return undefined;
    return (
      <span class="comm-total">
        <MixBar {...mix} />
        {text}
      </span>
    );
  };
  const name = ops.text('op');
  return (
    <Section title={table.title} note={table.note} end={<ColorLegend entries={OF_OPERATIONS} />}>
      <Table
        data={data}
        label={table.title}
        view={view}
        onView={(next, how) => setParams(viewChange(view, next, initial), how)}
        totals={['total_ps', 'hidden_ps', 'exposed_ps', 'exposed_fraction']}
        hasToolbar={ops.length > FEW_OPS}
        mono={['op']}
        prose={['remark']}
        barToken="--c-collective"
        render={render}
        onRow={(row) => openTool('trace_viewer', { q: queryOf(name(row)) })}
      />
    </Section>
  );
}

/** A click draws the step of that device. */
function DeviceTable({
  devices,
  ...link
}: { devices: Devices } & Pick<ToolProps, 'params' | 'setParams'>): VNode {
  const { table } = devices;
  const data = useMemo(() => tableData(table), [table]);
  const [view, setView] = useTableView('devices', link, data, { hidden: ['device_row'] });
  const rowOfDevice = devices.number('device_row');
  return (
    <Section title={table.title} note={`${plural(devices.length, 'device')}, ${devices.note}`}>
      <Table
        data={data}
        view={view}
        onView={setView}
        label={table.title}
        hasToolbar={devices.length > FEW_DEVICES}
        rowsInFull={12}
        maxHeight="420px"
        barToken="--c-collective"
        onRow={(row) => link.setParams({ device: String(rowOfDevice(row) ?? row) }, 'push')}
      />
    </Section>
  );
}

export function CommunicationView(props: ViewProps): VNode {
  const { payload, params, setParams } = props;
  const steps = useMemo(() => readTable(payload, TABLES.steps), [payload]);
  const ops = useMemo(() => readTable(payload, TABLES.ops), [payload]);
  const devices = useMemo(() => readTable(payload, TABLES.devices), [payload]);
  const chosenStep = rowOf(params['step']);
  const choice = {
    row: chosenStep,
    choose: (row: number) => setParams({ step: row === chosenStep ? undefined : String(row) }, 'push'),
    hint: 'Click to draw this step',
  };
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      <div class={steps.length > 1 ? 'comm-charts' : 'comm-charts one'}>
        <StepSection
          steps={steps}
          parts={STEP_PARTS}
          params={params}
          setParams={setParams}
          {...(steps.length > 1 ? { choice } : {})}
        />
        <OneStep {...props} steps={steps} devices={devices} />
      </div>
      <Operations ops={ops} params={params} setParams={setParams} />
      {devices.length > 1 && <DeviceTable devices={devices} params={params} setParams={setParams} />}
    </>
  );
}
