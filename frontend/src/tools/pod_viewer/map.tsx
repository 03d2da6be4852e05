/** The map of cores with its measure, its step slider and the card of a core. */
import type { VNode } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { readTable } from '../../api/declared';
import { categoryToken } from '../../base/color';
import { format, plural } from '../../base/units';
import { useFramed } from '../../widgets/framed';
import { Section } from '../../widgets/summary';
import type { ToolProps } from '../tool';
import { CoreCard } from './card';
import { channelTitle } from './channels';
import { useDetail } from './detail';
import {
  CELLS,
  coresOf,
  linkLoads,
  linksOf,
  peersOf,
  rangeOf,
  sendDelays,
  sharedBy,
  shownValues,
  stepOf,
  unitOf,
  type ChannelRows,
  type CoreRows,
  type PartRows,
  type Pod,
  type Slice,
} from './model';
import { Topology } from './topology';

const SETTLE_MS = 150;
/** Next to a map of several cores the card has a fixed height: its content does not move the page. */
const FEW_CORES = 64;

interface MapPageProps extends ToolProps {
  pod: Pod;
  cores: CoreRows;
  /** In the step of the link, or their means. */
  channels: ChannelRows;
  slice: Slice | null;
  steps: readonly string[];
  groups: string;
  onDrawn: () => void;
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

/** Computed from the channels, not asked for. */
const SEND_DELAY: MeasureChoice = { name: 'send_delay', title: 'Send delay', token: '--c-input' };
/** The color of the link with the longest latency. */
const LINK_TOKEN = '--c-collective';

function measuresOf(parts: PartRows, channels: ChannelRows, total: string): MeasureChoice[] {
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
    ...(channels.length ? [SEND_DELAY] : []),
  ];
}

/**
 * The measure of every core in every step; of channels one value per core, in the step of the link. Calls
 * `onDrawn` once drawn.
 */
function useCells(
  props: MapPageProps,
  channels: ChannelRows,
  nCores: number,
  measure: MeasureChoice,
): ArrayLike<number | null> {
  const isOfChannels = measure === SEND_DELAY;
  const params = isOfChannels ? null : { measure: measure.name };
  const { data, isLoading } = useDetail(props, 'cells', params, 'columns', `cells ${measure.name}`);
  useEffect(() => {
    if (isOfChannels || !isLoading) props.onDrawn();
  }, [isLoading, isOfChannels]);
  return useMemo(() => {
    if (isOfChannels) return sendDelays(channels, nCores);
    return data ? readTable(data, CELLS).numbers('value_ps') : [];
  }, [data, isOfChannels, isOfChannels && channels]);
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

function Scale({
  range,
  isShared,
  extent,
  strongest,
}: {
  range: readonly [number, number];
  isShared: boolean;
  extent: string;
  strongest: string;
}): VNode {
  if (isShared) return <div class="pod-scale">All equal: {extent}</div>;
  return (
    <div class="pod-scale">
      {format(range[0], 'ps')}{' '}
      <span style={{ background: `linear-gradient(to right, var(--hover), ${strongest})` }} />{' '}
      {format(range[1], 'ps')}
    </div>
  );
}

/** The colors of the links. */
const LINK_SCALE = `linear-gradient(to right, var(--line-strong), var(${LINK_TOKEN}))`;

function LinkScale({ range }: { range: readonly [number, number] }): VNode {
  return (
    <div
      class="pod-scale"
      data-tip="Longest latency of the channels over a link, in the chosen step or else on average"
    >
      Link latency {format(range[0], 'ps')} <span style={{ background: LINK_SCALE }} />{' '}
      {format(range[1], 'ps')}
    </div>
  );
}

/** What the map shows, and where the places of the chips are from. */
function mapNote({ topology }: Pod, measure: string): string {
  const place = topology?.length
    ? `${topology.text('shape')(0)} of ${topology.text('generation')(0)} chips`
    : topology
      ? 'blocks are hosts, cores of a chip are side by side'
      : 'blocks are hosts';
  return [measure, place, topology?.note].filter(Boolean).join('; ');
}

/** The parts that follow the slider and the pointer; everything else on the page follows the link. */
export function PodMap(props: MapPageProps): VNode {
  const { pod, params, setParams, steps, slice, channels } = props;
  const [step, setStep] = useStep(props, steps.length);
  const { parts } = pod;
  const unit = unitOf(pod.cores);
  const measures = useMemo(() => measuresOf(parts, pod.channels, pod.cores.title('total_ps')), [pod]);
  const measure = measures.find(({ name }) => name === params['measure']) ?? (measures[0] as MeasureChoice);
  const cores = useMemo(() => coresOf(pod.cores), [pod]);
  const cells = useCells(props, channels, cores.length, measure);
  const values = useMemo(
    () => shownValues(cells, cores.length, measure === SEND_DELAY ? -1 : step),
    [cells, cores, step, measure],
  );
  const range = useMemo(() => rangeOf(cells), [cells]);
  const shared = useMemo(() => sharedBy(cells), [cells]);
  const links = useMemo(() => linksOf(channels), [channels]);
  const loads = useMemo(() => (slice ? linkLoads(channels, cores) : null), [channels, cores, slice]);
  const channel = links[stepOf(params['channel'], links.length)] ?? null;
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
      title={slice ? 'Topology' : `Map of ${unit}s`}
      tip={`Each ${unit} as a cell within its chip and host, colored by the measure chosen`}
      note={mapNote(pod, measure.title)}
      end={
        <>
          {slice?.wraps.some(Boolean) && <span class="pod-legend wrap">Wrap link</span>}
          {channel && <span class="pod-legend channel">{channelTitle(channels, channel.row)}</span>}
        </>
      }
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
            label={`${measure.title} of ${plural(cores.length, unit)}: ${extent}`}
            {...{ cores, values, range, links, loads, slice, channel, focus, peers }}
            token={measure.token}
            linkToken={LINK_TOKEN}
            onPoint={point}
            onPick={(core) =>
              setParams({ core: core < 0 || core === picked ? undefined : String(core) }, 'replace')
            }
          />
          <Scale
            range={range}
            isShared={shared !== null}
            extent={extent}
            strongest={`color-mix(in srgb, var(${measure.token}) 75%, var(--hover))`}
          />
          {loads && <LinkScale range={loads.range} />}
        </div>
        <aside class={cores.length > FEW_CORES ? 'pod-card large' : 'pod-card'} aria-label="Core">
          {card}
        </aside>
      </div>
    </Section>
  );
}
