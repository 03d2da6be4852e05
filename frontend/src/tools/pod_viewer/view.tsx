/** Numbers, the map with its slider and card, parts by core and by step, stragglers, collectives, links. */
import type { VNode } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fetchPayload, payloadUrl } from '../../api/client';
import { numberColumn, rowsOf, textColumn, textAt } from '../../api/table';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { categoryToken } from '../../base/color';
import { format, plural } from '../../base/units';
import { useLoaded, type Loaded } from '../../state/payload';
import { openTool } from '../../state/selection';
import { useFramed } from '../../widgets/framed';
import { StepChart } from '../../widgets/step_chart';
import { Section, Tiles } from '../../widgets/summary';
import { PLAIN_VIEW } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { StepSection } from '../step_section';
import { seriesOf, stepNames } from '../steps';
import { idleColumns, tableData, type ToolProps } from '../tool';
import { CoreCard } from './card';
import { coresOf, linksOf, peersOf, rangeOf, sharedBy, shownValues, slowestFirst, stepOf } from './model';
import { Topology } from './topology';
import './style.css';

type ViewProps = ToolProps & { payload: Payload };

const TILES = [
  'n_hosts',
  'n_chips',
  'n_cores',
  'n_steps',
  'n_shown_steps',
  'job_step_ps',
  'step_ps',
  'max_own_ps',
  'median_own_ps',
  'wait_fraction',
  'copy_wait_fraction',
  'idle_fraction',
  'all_idle_fraction',
];
const MOST_BARS = 256;
const SETTLE_MS = 150;
/** Beside a map of more, the card has a fixed height: what it shows does not move the page. */
const FEW_CORES = 64;
const ROWS_HIDDEN = ['source_row', 'target_row', 'core_row'];

/**
 * What depends on the step (the cores) or on the measure (the cells), asked for apart and kept while the next
 * comes; null: nothing is.
 */
function useDetail(
  { info, run, hosts }: ViewProps,
  params: Record<string, string> | null,
  format: 'json' | 'columns',
  kept: string,
): Loaded<Payload> {
  const query = { tool: info.name, run, hosts, params: { overview: 'false', ...params } };
  const url = params ? payloadUrl(query, format) : '';
  return useLoaded(url, `${run}\n${kept}`, (abort) => fetchPayload(query, format, abort));
}

/** The step under the slider at once, and in the link a moment later. */
function useStep({ params, setParams }: ViewProps, nSteps: number): [number, (step: number) => void] {
  const linked = stepOf(params['step'], nSteps);
  const [step, setStep] = useState(linked);
  const timer = useRef(0);
  useEffect(() => setStep(linked), [linked]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const choose = useFramed((next: number): void => {
    setStep(next);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(
      () => setParams({ step: next < 0 ? undefined : String(next) }, 'replace'),
      SETTLE_MS,
    );
  });
  return [step, choose];
}

interface MeasureChoice {
  name: string;
  title: string;
  token: string;
}

function measuresOf(parts: PayloadTable | undefined, total: string): MeasureChoice[] {
  const own = [
    { name: 'own', title: 'Own time (without waiting for others)', token: '--c-input' },
    { name: 'total', title: total, token: '--accent' },
  ];
  return [
    ...own,
    ...rowsOf(parts).map((row) => ({
      name: String(row['column']).replace(/_ps$/, ''),
      title: String(row['category']),
      token: categoryToken(String(row['color'])),
    })),
  ];
}

function Controls({
  measures,
  measure,
  steps,
  step,
  onMeasure,
  onStep,
}: {
  measures: readonly MeasureChoice[];
  measure: string;
  steps: readonly string[];
  step: number;
  onMeasure: (name: string) => void;
  onStep: (step: number) => void;
}): VNode {
  return (
    <div class="pod-controls">
      <label>
        Color{' '}
        <select class="field" value={measure} onChange={(event) => onMeasure(event.currentTarget.value)}>
          {measures.map(({ name, title }) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {steps.length > 1 && (
        <label class="pod-slider">
          Step{' '}
          <input
            type="range"
            min={-1}
            max={steps.length - 1}
            value={step}
            aria-valuetext={step < 0 ? 'mean of all steps' : steps[step]}
            onInput={(event) => onStep(Number(event.currentTarget.value))}
          />
          <output>{step < 0 ? `mean of ${plural(steps.length, 'step')}` : steps[step]}</output>
        </label>
      )}
      {step >= 0 && (
        <button type="button" class="button small" onClick={() => onStep(-1)}>
          Mean of all
        </button>
      )}
    </div>
  );
}

/** What moves with the slider and the pointer; everything else on the page follows the link. */
function PodMap(
  props: ViewProps & { cores: PayloadTable; steps: readonly string[]; groups: string; onDrawn: () => void },
): VNode {
  const { payload, params, setParams, steps } = props;
  const [step, setStep] = useStep(props, steps.length);
  const { parts, channels, cores: table } = payload.tables;
  const measures = useMemo(
    () => measuresOf(parts, numberColumn(table, 'total_ps')?.title ?? 'Step time'),
    [parts, table],
  );
  const measure = measures.find(({ name }) => name === params['measure']) ?? (measures[0] as MeasureChoice);
  const detail = useDetail(
    props,
    { measure: measure.name, cells: 'true' },
    'columns',
    `cells ${measure.name}`,
  );
  const cores = useMemo(() => (table ? coresOf(table) : []), [table]);
  const cells = numberColumn(detail.data?.tables['cells'], 'value_ps')?.values;
  useEffect(() => {
    if (!detail.isLoading) props.onDrawn();
  }, [detail.isLoading]);
  const values = useMemo(() => shownValues(cells ?? [], cores.length, step), [cells, cores, step]);
  const range = useMemo(() => rangeOf(cells ?? []), [cells]);
  const shared = useMemo(() => sharedBy(cells ?? []), [cells]);
  const links = useMemo(() => linksOf(channels), [channels]);
  const [pointed, setPointed] = useState(-1);
  const point = useFramed(setPointed);
  const picked = stepOf(params['core'], cores.length);
  const focus = pointed >= 0 ? pointed : picked;
  const peers = useMemo(
    () => (focus >= 0 && props.groups ? peersOf(props.groups, cores, focus) : []),
    [focus, cores, props.groups],
  );
  const what = !steps.length ? 'whole capture' : step < 0 ? 'mean of all steps' : `step ${steps[step]}`;
  const extent =
    shared === null
      ? `${format(range[0], 'ps')} to ${format(range[1], 'ps')}`
      : `${format(shared, 'ps')} on each`;
  const card = useMemo(
    () => (
      <CoreCard
        cores={cores}
        table={props.cores}
        parts={parts}
        channels={channels}
        links={links}
        core={focus}
        step={what}
      />
    ),
    [cores, props.cores, parts, channels, links, focus, focus < 0 || what],
  );
  return (
    <Section
      title="Map of cores"
      note={`${measure.title}; blocks are hosts, cores of a chip stand side by side`}
    >
      <Controls
        measures={measures}
        measure={measure.name}
        steps={steps}
        step={step}
        onStep={setStep}
        onMeasure={(name) => setParams({ measure: name === 'own' ? undefined : name }, 'push')}
      />
      <div class="pod-body">
        <div>
          <Topology
            label={`${measure.title} of ${plural(cores.length, 'core')}: ${extent}`}
            {...{ cores, values, range, links, focus, peers }}
            token={measure.token}
            onPoint={point}
            onPick={(core) =>
              setParams({ core: core < 0 || core === picked ? undefined : String(core) }, 'replace')
            }
          />
          {shared === null ? (
            <div class="pod-scale">
              {format(range[0], 'ps')}{' '}
              <span
                style={{ background: `linear-gradient(to right, var(--hover), var(${measure.token}))` }}
              />{' '}
              {format(range[1], 'ps')}
            </div>
          ) : (
            <div class="pod-scale">All alike: {extent}</div>
          )}
        </div>
        <aside class={cores.length > FEW_CORES ? 'pod-card large' : 'pod-card'} aria-label="Core">
          {card}
        </aside>
      </div>
    </Section>
  );
}

/** A single core has nothing to be compared with: its parts alone. */
function OnlyCore({
  payload,
  cores,
  step,
}: {
  payload: Payload;
  cores: PayloadTable;
  step: string | undefined;
}): VNode {
  const what = !payload.tables['steps']
    ? 'whole capture'
    : step === undefined
      ? 'mean of all steps'
      : `step ${step}`;
  return (
    <Section title="Where its time goes" note={what}>
      <CoreCard
        cores={coresOf(cores)}
        table={cores}
        parts={payload.tables['parts']}
        channels={undefined}
        links={[]}
        core={0}
        step=""
      />
    </Section>
  );
}

/** Parts of the step, core beside core; of very many the slowest. */
function ByCore({
  title,
  table,
  parts,
  params,
  setParams,
}: { title: string; table: PayloadTable; parts: PayloadTable | undefined } & Pick<
  ToolProps,
  'params' | 'setParams'
>): VNode | null {
  const rows = useMemo(() => slowestFirst(table, MOST_BARS), [table]);
  const names = useMemo(() => {
    const column = textColumn(table, 'core');
    return rows.map((row) => ((column && textAt(column, row)) ?? '').replace(/^(?=\d)/, 'host '));
  }, [table, rows]);
  const series = useMemo(
    () =>
      seriesOf(table, parts).map((one) => ({ ...one, values: rows.map((row) => one.values[row] ?? null) })),
    [table, parts, rows],
  );
  const note =
    rows.length < table.n_rows
      ? `the ${rows.length} of ${table.n_rows.toLocaleString('en-US')} with the longest own time`
      : plural(rows.length, 'core');
  return (
    <StepChart
      title={title}
      note={note}
      names={names}
      axisName="core"
      series={series}
      zoom={params['bars']}
      onZoom={(bars) => setParams({ bars }, 'replace')}
    />
  );
}

function Plain({
  table,
  empty,
  onRow,
  chosenRow,
  hidden = [],
}: {
  table: PayloadTable | undefined;
  empty: string;
  onRow?: (row: number) => void;
  chosenRow?: number;
  hidden?: string[];
}): VNode | null {
  const data = useMemo(() => (table ? tableData(table) : null), [table]);
  const [view, setView] = useState<typeof PLAIN_VIEW | null>(null);
  if (!table || !data) return null;
  const shown = view ?? { ...PLAIN_VIEW, hidden: new Set([...ROWS_HIDDEN, ...hidden, ...idleColumns(data)]) };
  return (
    <Section title={table.title} note={table.note}>
      {data.nRows ? (
        <Table
          data={data}
          view={shown}
          onView={setView}
          label={table.title}
          rowsInFull={12}
          maxHeight="420px"
          mono={['op', 'ops', 'groups']}
          barToken="--c-collective"
          {...(onRow ? { onRow } : {})}
          {...(chosenRow === undefined ? {} : { chosenRow })}
        />
      ) : (
        <p class="pod-hint">{empty}</p>
      )}
    </Section>
  );
}

/** What is below the map: it waits until that is drawn. */
function Rest({
  payload,
  params,
  setParams,
  cores,
  chosen,
}: ViewProps & { cores: PayloadTable | undefined; chosen: number }): VNode {
  const { parts, steps, collectives, channels } = payload.tables;
  const isOne = cores?.n_rows === 1;
  return (
    <>
      <div class="pod-rest">
        {cores && cores.n_rows > 1 && (
          <ByCore
            title={steps ? 'Step by core' : 'Capture by core'}
            table={cores}
            parts={parts}
            params={params}
            setParams={setParams}
          />
        )}
      </div>
      <div class="pod-rest">
        {steps && steps.n_rows > 1 && (
          <StepSection steps={steps} breakdown={parts} params={params} setParams={setParams} />
        )}
      </div>
      {(!isOne || (collectives?.n_rows ?? 0) > 0) && (
        <div class="pod-rest">
          <Plain
            table={collectives}
            empty="No collective was traced on these cores."
            chosenRow={chosen}
            onRow={(row) => setParams({ collective: row === chosen ? undefined : String(row) }, 'replace')}
          />
        </div>
      )}
      {!isOne && (
        <>
          <div class="pod-rest">
            <Plain
              table={channels}
              empty="No link between two of these cores: links are known from sends, receives and permutations whose HLO is in the trace."
            />
          </div>
          <div class="pod-rest">
            <Plain table={cores} empty="" />
          </div>
        </>
      )}
    </>
  );
}

export function PodViewerView(props: ViewProps): VNode {
  const { payload, params } = props;
  const { steps, stragglers, collectives, cores: mean } = payload.tables;
  const names = useMemo(() => (steps ? stepNames(steps) : []), [steps]);
  const linked = stepOf(params['step'], names.length);
  const detail = useDetail(props, linked < 0 ? null : { step: String(linked) }, 'json', 'cores').data;
  const [isDrawn, setDrawn] = useState(false);
  const cores = (linked < 0 ? mean : detail?.tables['cores']) ?? mean;
  const chosen = stepOf(params['collective'], collectives?.n_rows ?? 0);
  const groups = collectives && chosen >= 0 ? String(rowsOf(collectives)[chosen]?.['groups'] ?? '') : '';
  const openHost = (row: number): void =>
    openTool('trace_viewer', { hosts: String(rowsOf(stragglers)[row]?.['host'] ?? '') });
  const tiles = TILES.flatMap((name) => (linked < 0 ? payload : (detail ?? payload)).scalars[name] ?? []);
  return (
    <>
      <Tiles tiles={tiles} />
      {(stragglers?.n_rows ?? 0) > 0 && <Plain table={stragglers} empty="" onRow={openHost} />}
      {cores && cores.n_rows > 1 && (
        <PodMap {...props} cores={cores} steps={names} groups={groups} onDrawn={() => setDrawn(true)} />
      )}
      {cores?.n_rows === 1 && <OnlyCore payload={payload} cores={cores} step={names[linked]} />}
      {(isDrawn || !cores || cores.n_rows === 1) && <Rest {...props} cores={cores} chosen={chosen} />}
    </>
  );
}
