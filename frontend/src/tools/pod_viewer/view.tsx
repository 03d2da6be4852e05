/**
 * Numbers, the map with its slider and card, time breakdown by core and by step, stragglers, collectives,
 * links.
 */
import type { VNode } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fetchPayload, payloadUrl } from '../../api/client';
import { readScalar, readTable, readTiles } from '../../api/declared';
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
import {
  CELLS,
  coresOf,
  linksOf,
  peersOf,
  podOf,
  rangeOf,
  sharedBy,
  shownValues,
  slowestFirst,
  stepOf,
  SCALARS,
  TABLES,
  type CoreRows,
  type PartRows,
  type Pod,
} from './model';
import { Topology } from './topology';
import './style.css';

type ViewProps = ToolProps & { payload: Payload };
type PartProps = ToolProps & { pod: Pod };
const MOST_BARS = 256;
const SETTLE_MS = 150;
/** Next to a map of several cores the card has a fixed height: its content does not move the page. */
const FEW_CORES = 64;
/** Up to this many cores that do the same are one line. */
const FEW_ALIKE = 8;
const ROWS_HIDDEN = ['source_row', 'target_row', 'core_row'];

/**
 * The payload that depends on the step (the cores) or on the measure (the cells), requested separately and
 * kept while the next one loads; null: none yet.
 */
function useDetail(
  { info, run, hosts }: ToolProps,
  question: 'cores' | 'cells',
  params: Record<string, string> | null,
  format: 'json' | 'columns',
  keepKey: string,
): Loaded<Payload> {
  const query = { tool: info.name, question, run, hosts, params: params ?? {} };
  const url = params ? payloadUrl(query, format) : '';
  return useLoaded(url, `${run}\n${keepKey}`, (abort) => fetchPayload(query, format, abort));
}

/** The slider's step takes effect at once, and in the link a moment later. */
function useStep({ params, setParams }: ToolProps, nSteps: number): [number, (step: number) => void] {
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

function measuresOf(parts: PartRows, total: string): MeasureChoice[] {
  const totals = [
    { name: 'own', title: 'Own time (without waiting for others)', token: '--c-input' },
    { name: 'total', title: total, token: '--accent' },
  ];
  return [
    ...totals,
    ...parts.all().map(({ column, category, color }) => ({
      name: column.replace(/_ps$/, ''),
      title: category,
      token: categoryToken(color),
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

/** The parts that follow the slider and the pointer; everything else on the page follows the link. */
function PodMap(
  props: PartProps & { cores: CoreRows; steps: readonly string[]; groups: string; onDrawn: () => void },
): VNode {
  const { pod, params, setParams, steps } = props;
  const [step, setStep] = useStep(props, steps.length);
  const { parts, channels } = pod;
  const measures = useMemo(() => measuresOf(parts, pod.cores.title('total_ps')), [pod]);
  const measure = measures.find(({ name }) => name === params['measure']) ?? (measures[0] as MeasureChoice);
  const { data, isLoading } = useDetail(
    props,
    'cells',
    { measure: measure.name },
    'columns',
    `cells ${measure.name}`,
  );
  const cores = useMemo(() => coresOf(pod.cores), [pod]);
  const cells = useMemo(() => (data ? readTable(data, CELLS).numbers('value_ps') : []), [data]);
  useEffect(() => {
    if (!isLoading) props.onDrawn();
  }, [isLoading]);
  const values = useMemo(() => shownValues(cells, cores.length, step), [cells, cores, step]);
  const range = useMemo(() => rangeOf(cells), [cells]);
  const shared = useMemo(() => sharedBy(cells), [cells]);
  const links = useMemo(() => linksOf(channels), [channels]);
  const [pointed, setPointed] = useState(-1);
  const point = useFramed(setPointed);
  const picked = stepOf(params['core'], cores.length);
  const focus = pointed >= 0 ? pointed : picked;
  const peers = useMemo(
    () => (focus >= 0 && props.groups ? peersOf(props.groups, cores, focus) : []),
    [focus, cores, props.groups],
  );
  const stepTitle = !steps.length ? 'whole capture' : step < 0 ? 'mean of all steps' : `step ${steps[step]}`;
  const extent =
    shared === null
      ? `${format(range[0], 'ps')} to ${format(range[1], 'ps')}`
      : `${format(shared, 'ps')} on each`;
  const card = useMemo(
    () => (
      <CoreCard
        cores={cores}
        rows={props.cores}
        parts={parts}
        channels={channels}
        links={links}
        core={focus}
        step={stepTitle}
      />
    ),
    [cores, props.cores, parts, channels, links, focus, focus < 0 || stepTitle],
  );
  return (
    <Section
      title="Map of cores"
      tip="Each core as a cell within its chip and host, colored by the measure chosen"
      note={`${measure.title}; blocks are hosts, cores of a chip are side by side`}
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
            <div class="pod-scale">All equal: {extent}</div>
          )}
        </div>
        <aside class={cores.length > FEW_CORES ? 'pod-card large' : 'pod-card'} aria-label="Core">
          {card}
        </aside>
      </div>
    </Section>
  );
}

/** One core, or a few that do the same: there is nothing to compare, so only the parts of one are shown. */
function OneForAll({ pod, cores, step }: { pod: Pod; cores: CoreRows; step: string | undefined }): VNode {
  const stepTitle = !pod.steps ? 'whole capture' : step === undefined ? 'mean of all steps' : `step ${step}`;
  return (
    <Section
      title={cores.length > 1 ? 'Where the time of each goes' : 'Where its time goes'}
      tip="The parts of the core's step; they add up to it"
      note={cores.length > 1 ? `${stepTitle}; one of ${cores.length} that do the same` : stepTitle}
    >
      <CoreCard
        cores={coresOf(cores)}
        rows={cores}
        parts={pod.parts}
        channels={null}
        links={[]}
        core={0}
        step=""
      />
    </Section>
  );
}

/** Parts of the step, one bar per core; of very many cores the slowest. */
function ByCore({
  title,
  cores,
  parts,
  params,
  setParams,
}: { title: string; cores: CoreRows; parts: PartRows } & Pick<
  ToolProps,
  'params' | 'setParams'
>): VNode | null {
  const rows = useMemo(() => slowestFirst(cores, MOST_BARS), [cores]);
  const names = useMemo(
    () =>
      rows.map((row) =>
        cores
          .text('core')(row)
          .replace(/^(?=\d)/, 'host '),
      ),
    [cores, rows],
  );
  const series = useMemo(
    () =>
      seriesOf(cores, parts.all()).map((layer) => ({
        ...layer,
        values: rows.map((row) => layer.values[row] ?? null),
      })),
    [cores, parts, rows],
  );
  const note =
    rows.length < cores.length
      ? `the ${rows.length} of ${cores.length.toLocaleString('en-US')} with the longest own time`
      : plural(rows.length, 'core');
  return (
    <StepChart
      title={title}
      tip="How each core spends the step, split into parts that add up to it"
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
  barToken = '--c-compute',
}: {
  table: PayloadTable;
  empty: string;
  onRow?: (row: number) => void;
  chosenRow?: number;
  hidden?: string[];
  barToken?: string;
}): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const [view, setView] = useState<typeof PLAIN_VIEW | null>(null);
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
          barToken={barToken}
          {...(onRow ? { onRow } : {})}
          {...(chosenRow === undefined ? {} : { chosenRow })}
        />
      ) : (
        <p class="pod-hint">{empty}</p>
      )}
    </Section>
  );
}

/**
 * The page below the map: it waits until the map is drawn. `isOne`: there is no map, as there is nothing to
 * compare.
 */
function Rest({
  pod,
  params,
  setParams,
  cores,
  chosen,
  isOne,
}: PartProps & { cores: CoreRows; chosen: number; isOne: boolean }): VNode {
  const { parts, steps, collectives, channels, processGroups } = pod;
  const layers = useMemo(() => parts.all(), [parts]);
  return (
    <>
      {!isOne && (
        <div class="pod-rest">
          <ByCore
            title={steps ? 'Step by core' : 'Capture by core'}
            cores={cores}
            parts={parts}
            params={params}
            setParams={setParams}
          />
        </div>
      )}
      {steps && steps.length > 1 && (
        <div class="pod-rest">
          <StepSection steps={steps} parts={layers} params={params} setParams={setParams} />
        </div>
      )}
      {(!isOne || collectives.length > 0) && (
        <div class="pod-rest">
          <Plain
            table={collectives.table}
            empty="No collective was traced on these cores."
            barToken="--c-collective"
            chosenRow={chosen}
            onRow={(row) => setParams({ collective: row === chosen ? undefined : String(row) }, 'replace')}
          />
        </div>
      )}
      {processGroups && (
        <div class="pod-rest">
          <Plain table={processGroups.table} empty="" barToken="--c-collective" />
        </div>
      )}
      {!isOne && (
        <>
          <div class="pod-rest">
            <Plain
              table={channels.table}
              empty={
                'No link between two of these cores: links come from sends, receives and permutations ' +
                'whose HLO is in the trace.'
              }
            />
          </div>
          <div class="pod-rest">
            <Plain table={cores.table} empty="" />
          </div>
        </>
      )}
    </>
  );
}

export function PodViewerView(props: ViewProps): VNode {
  const { payload, params } = props;
  const pod = useMemo(() => podOf(payload), [payload]);
  const { steps, stragglers, collectives } = pod;
  const names = useMemo(() => (steps ? stepNames(steps) : []), [steps]);
  const linked = stepOf(params['step'], names.length);
  const { data } = useDetail(props, 'cores', linked < 0 ? null : { step: String(linked) }, 'json', 'cores');
  const detail = linked < 0 ? null : data;
  const [isDrawn, setDrawn] = useState(false);
  const cores = useMemo(() => (detail ? readTable(detail, TABLES.cores) : pod.cores), [detail, pod]);
  const chosen = stepOf(params['collective'], collectives.length);
  const groups = chosen >= 0 ? collectives.text('groups')(chosen) : '';
  const isAlike = readScalar(payload, SCALARS.is_alike)?.value === true;
  const isOne = isAlike && cores.length <= FEW_ALIKE && !stragglers.length;
  const openHost = (row: number): void => openTool('trace_viewer', { hosts: stragglers.text('host')(row) });
  return (
    <>
      {!isOne && <Tiles tiles={readTiles(payload, detail ?? payload)} />}
      {stragglers.length > 0 && <Plain table={stragglers.table} empty="" onRow={openHost} />}
      {!isOne && (
        <PodMap
          {...props}
          pod={pod}
          cores={cores}
          steps={names}
          groups={groups}
          onDrawn={() => setDrawn(true)}
        />
      )}
      {isOne && <OneForAll pod={pod} cores={cores} step={names[linked]} />}
      {(isDrawn || isOne) && <Rest {...props} pod={pod} cores={cores} chosen={chosen} isOne={isOne} />}
    </>
  );
}
