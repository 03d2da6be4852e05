/** Choices, then each thread's boxes, then the steps; next to them the chosen function. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readNumber, readScalar, readTable } from '../../api/declared';
import type { Payload } from '../../api/types';
import { wordsOf } from '../../base/search';
import { format, plural } from '../../base/units';
import { StepChart } from '../../widgets/step_chart';
import { Section } from '../../widgets/summary';
import { seriesOf, stepNames, stepRow } from '../steps';
import type { ToolProps } from '../tool';
import { Flame } from './flame';
import {
  COLORINGS,
  FAMILIES,
  found,
  largestGroups,
  nodesOf,
  PHASES,
  SCALARS,
  TABLES,
  threadsOf,
  widthPs,
  type Coloring,
  type FlameNode,
  type Thread,
} from './model';
import { groupToken } from './paint';
import { Panel } from './panel';
import './style.css';
import { Toolbar } from './toolbar';

const N_GROUPS = 8;
const PARTS = [
  { column: 'rest_ps', category: 'Everything else', color: 'launch' },
  { column: 'input_ps', category: 'Waiting for input', color: 'input' },
];
const SETS = ['all', 'median', 'slowest', 'trace'];

function Legend({
  nodes,
  coloring,
  isCompared,
}: {
  nodes: readonly FlameNode[];
  coloring: Coloring;
  isCompared: boolean;
}): VNode {
  const items = useMemo(() => {
    if (isCompared)
      return [
        {
          name: 'more',
          title: 'More time than in B',
          tip: 'A: the steps shown. B: the steps to compare with',
        },
        { name: 'less', title: 'Less time', tip: 'Than in the steps to compare with' },
      ];
    if (coloring === 'family') {
      const present = new Set(
        nodes.map(({ family, phase }) => (phase && family !== 'waiting' ? phase : family)),
      );
      return [...FAMILIES, ...PHASES]
        .filter(({ name }) => present.has(name))
        .map(({ name, title, meaning }) => ({ name, title, tip: meaning }));
    }
    return [];
  }, [nodes, coloring, isCompared]);
  const groups = useMemo(
    () => (isCompared || coloring === 'family' ? [] : largestGroups(nodes, coloring, N_GROUPS)),
    [nodes, coloring, isCompared],
  );
  return (
    <span class="fg-legend" role="list" aria-label="Colors">
      {items.map(({ name, title, tip }) => (
        <span key={name} role="listitem" data-tip={tip}>
          <i class={`fg-swatch fg-${name}`} />
          {title}
        </span>
      ))}
      {groups.map((group) => (
        <span key={group} role="listitem">
          <i class="fg-swatch fg-grouped" style={{ '--group': `var(${groupToken(group)})` }} />
          {group}
        </span>
      ))}
    </span>
  );
}

/** "python", "main thread · 3 threads · 12.3 ms covered". */
function noteOf(thread: Thread, isPerStep: boolean): string {
  const covered = `${format(thread.busyPs, 'ps')} covered${isPerStep ? ' per step' : ''}`;
  return [
    thread.section,
    thread.nThreads > 1 ? `${plural(thread.nThreads, 'thread')}, times add up` : '',
    thread.busyFraction === null ? covered : `${covered} (${format(thread.busyFraction, 'fraction')})`,
  ]
    .filter(Boolean)
    .join(' · ');
}

function matchText(
  { rows, totalPs }: { rows: ReadonlySet<number>; totalPs: number },
  stepPs: number,
  isPerStep: boolean,
): string {
  const share = format(totalPs / Math.max(stepPs, 1), 'fraction');
  const time = `${format(totalPs, 'ps')}${isPerStep ? ' per step' : ''} (${share})`;
  return `${plural(rows.size, 'match', 'matches')}, ${time}`;
}

/** The steps whose time the boxes show. */
function shownText(nSteps: number, stepPs: number): string {
  const time = format(stepPs, 'ps');
  if (!nSteps) return `the whole trace, ${time}`;
  return nSteps === 1 ? `1 step of ${time}` : `mean of ${plural(nSteps, 'step')}, ${time} each`;
}

/** The trees that the run has: stacks, and scopes or modules. */
function treesOf(payload: Payload): string[] {
  return [
    'stacks',
    ...(readScalar(payload, SCALARS.has_scopes)?.value ? ['scopes'] : []),
    ...(readScalar(payload, SCALARS.has_modules)?.value ? ['modules'] : []),
  ];
}

/** What a click on a step does: the first shows it, the second is compared with it, on the same one shows all. */
export function stepChange(
  params: Readonly<Record<string, string>>,
  step: string,
): Record<string, string | undefined> {
  const chosen = params['steps'];
  const isOne = chosen !== undefined && !SETS.includes(chosen);
  if (chosen === step) return { steps: undefined, against: undefined, zoom: undefined };
  if (isOne && params['order'] !== 'time')
    return { against: params['against'] === step ? undefined : step, zoom: undefined };
  return { steps: step, zoom: undefined };
}

/** Time of each thread's roots, in ps. */
function spansOf(nodes: readonly FlameNode[]): Map<number, number> {
  const spans = new Map<number, number>();
  for (const node of nodes)
    if (node.parent < 0) spans.set(node.thread, (spans.get(node.thread) ?? 0) + widthPs(node));
  return spans;
}

export function FlameGraphView({ payload, ...props }: { payload: Payload } & ToolProps): VNode {
  const { params, setParams } = props;
  const nodes = useMemo(() => nodesOf(payload), [payload]);
  const threads = useMemo(() => threadsOf(payload), [payload]);
  const steps = readTable(payload, TABLES.steps);
  const names = useMemo(() => stepNames(steps), [payload]);
  const series = useMemo(() => seriesOf(steps, PARTS), [payload]);
  const stepPs = readNumber(payload, SCALARS.step_time_ps) ?? 0;
  const otherPs = readNumber(payload, SCALARS.other_step_time_ps);
  const isCompared = otherPs !== null;
  const nSteps = readNumber(payload, SCALARS.n_steps_shown) ?? 0;
  const isPerStep = nSteps > 0;
  const hasPackages = useMemo(() => nodes.some((node) => node.package !== ''), [nodes]);
  const coloring = COLORINGS.find((name) => name === params['color']) ?? 'family';
  const search = useMemo(() => found(nodes, wordsOf(params['q'] ?? '')), [nodes, params['q']]);
  const zoomed = nodes[Number(params['zoom'] ?? -1)]?.row ?? -1;
  const shown = threads.filter(({ isShown }) => isShown);
  const spans = useMemo(() => spansOf(nodes), [nodes]);
  const windowPs = Math.max(stepPs + (otherPs ?? 0), 1);
  const zoom = (row: number): void => setParams({ zoom: row >= 0 ? String(row) : undefined }, 'push');
  const choose = (node: FlameNode): void => {
    if (!node.key) zoom(node.nSmaller ? node.parent : node.row);
    else setParams({ function: node.key === params['function'] ? undefined : node.key }, 'push');
  };
  const foundText = search ? matchText(search, stepPs, isPerStep) : '';
  const name = params['function'];
  const stepText = shownText(nSteps, stepPs);
  return (
    <>
      <Toolbar
        {...props}
        threads={threads}
        steps={names}
        coloring={coloring}
        hasPackages={hasPackages}
        trees={treesOf(payload)}
        foundText={foundText}
      />
      <div class={name ? 'fg-page has-panel' : 'fg-page'}>
        <div>
          <p class="fg-about">
            <span class="muted">
              {isCompared
                ? `A: ${stepText}. B: ${format(otherPs, 'ps')} per step. Boxes are as wide as both together.`
                : `Shown: ${stepText}.`}
            </span>
            {zoomed >= 0 && (
              <button type="button" class="button small" onClick={() => zoom(-1)}>
                Zoom out of {nodes[zoomed]?.name}
              </button>
            )}
            <Legend nodes={nodes} coloring={coloring} isCompared={isCompared} />
          </p>
          {shown.map((thread) => (
            <Section
              key={thread.row}
              title={thread.name}
              tip="Calls on this thread or pool: a box is as wide as its time, with its callers above it"
              note={noteOf(thread, isPerStep)}
            >
              {(spans.get(thread.row) ?? 0) > 0 ? (
                <Flame
                  {...{ nodes, stepPs, isPerStep, isCompared, coloring, zoomed }}
                  thread={thread.row}
                  spanPs={Math.max(windowPs, spans.get(thread.row) ?? 0)}
                  title={thread.name}
                  chosen={name ?? ''}
                  found={search?.rows ?? null}
                  onZoom={zoom}
                  onChoose={choose}
                />
              ) : (
                <p class="muted">Nothing was recorded on it in these steps.</p>
              )}
            </Section>
          ))}
          {names.length > 1 && (
            <StepChart
              title="Steps"
              note="click one to show it, a second one to compare with it"
              names={names}
              series={series}
              choice={{
                row: nSteps === 1 || isCompared ? stepRow(names, oneOf(steps)) : -1,
                choose: (row) => setParams(stepChange(params, names[row] ?? ''), 'push'),
                hint: 'Click to show it, or to compare with it',
              }}
              zoom={params['bars']}
              onZoom={(bars) => setParams({ bars }, 'replace')}
            />
          )}
        </div>
        {name && <Panel {...props} name={name} stepPs={stepPs} isPerStep={isPerStep} />}
      </div>
    </>
  );
}

/** The name of the only step shown; undefined: there are several. */
function oneOf(steps: {
  readonly length: number;
  text: (name: 'step') => (row: number) => string;
  flag: (name: 'is_shown') => (row: number) => boolean;
}): string | undefined {
  const [name, isShown] = [steps.text('step'), steps.flag('is_shown')];
  const rows = Array.from({ length: steps.length }, (_, row) => row).filter(isShown);
  return rows.length === 1 ? name(rows[0] ?? 0) : undefined;
}
