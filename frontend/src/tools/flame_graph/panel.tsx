/** The chosen function: its numbers, callers and callees, longest calls, and ways to the timeline. */
import type { VNode } from 'preact';
import { dataUrl, fetchPayload, type DataQuery } from '../../api/client';
import { readNumber, readTable } from '../../api/declared';
import type { Payload } from '../../api/types';
import { format } from '../../base/units';
import { canOpen } from '../../state/catalog';
import { useLoaded } from '../../state/payload';
import { placeOfFrame } from '../../base/source_link';
import { openTool } from '../../state/selection';
import { Failed, Loading } from '../../widgets/states';
import { selectionParams } from './selection_params';
import { Place, SourceLines } from '../source';
import type { ToolProps } from '../tool';
import { familyTitle, FUNCTION, placeOf, signed } from './model';

const MOST_ROWS = 8;
const MOST_LEVELS = 5;
const LEVEL_PX = 24;
const LEAST = 0.004;

export interface SideNode {
  row: number;
  parent: number;
  level: number;
  name: string;
  place: string;
  family: string;
  totalPs: number;
  calls: number;
  key: string;
  children: number[];
}

export interface PanelProps extends ToolProps {
  name: string;
  stepPs: number;
  isPerStep: boolean;
}

/** The two trees; a row's children are those that lead on from it. */
export function sidesOf(payload: Payload): { callers: SideNode[]; callees: SideNode[]; all: SideNode[] } {
  const all: SideNode[] = [];
  const sides: string[] = [];
  for (const [row, one] of readTable(payload, FUNCTION.tables.sides).all().entries()) {
    const above = all[one.parent ?? -1];
    sides.push(one.side);
    all.push({
      row,
      parent: above ? above.row : -1,
      level: above ? above.level + 1 : 0,
      name: one.name,
      place: placeOf(one.file, one.line),
      family: one.family,
      totalPs: one.total_ps ?? 0,
      calls: one.calls ?? 0,
      key: one.key,
      children: [],
    });
    above?.children.push(row);
  }
  return {
    all,
    callers: all.filter((_, i) => sides[i] === 'callers'),
    callees: all.filter((_, i) => sides[i] === 'callees'),
  };
}

interface Placed {
  node: SideNode;
  left: number;
  width: number;
  level: number;
}

/** The boxes of a side; the function itself, at level 0, is as wide as the picture. */
export function placedOf(all: readonly SideNode[], root: SideNode): Placed[] {
  const result: Placed[] = [];
  const waiting: Placed[] = [{ node: root, left: 0, width: 1, level: 0 }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (next.width < LEAST || next.level > MOST_LEVELS) continue;
    result.push(next);
    let at = next.left;
    for (const row of next.node.children) {
      const node = all[row] as SideNode;
      const width = node.totalPs / Math.max(root.totalPs, 1);
      waiting.push({ node, left: at, width, level: next.level + 1 });
      at += width;
    }
  }
  return result;
}

function tipOf(node: SideNode): string {
  const calls = `${format(node.calls, 'count')} ${node.calls === 1 ? 'call' : 'calls'}`;
  return `${node.name} ${node.place}\n${format(node.totalPs, 'ps')}, ${calls}`;
}

function Sandwich({
  payload,
  onChoose,
}: {
  payload: Payload;
  onChoose: (key: string) => void;
}): VNode | null {
  const { all, callers, callees } = sidesOf(payload);
  const [root, below] = [callers[0], callees[0]];
  if (!root || !below) return null;
  const up = placedOf(all, root).filter(({ level }) => level > 0);
  const down = placedOf(all, below);
  const nUp = Math.max(0, ...up.map(({ level }) => level));
  const nDown = Math.max(0, ...down.map(({ level }) => level)) + 1;
  const boxes = [
    ...up.map((one) => ({ ...one, top: nUp - one.level })),
    ...down.map((one) => ({ ...one, top: nUp + one.level })),
  ];
  return (
    <section aria-label="Callers and callees">
      <h3>Callers and callees</h3>
      <div class="fg-sandwich" style={{ height: `${(nUp + nDown) * LEVEL_PX}px` }}>
        {boxes.map(({ node, left, width, top }) => (
          <button
            key={node.row}
            type="button"
            class={`fg-box fg-${node.family}`}
            aria-pressed={top === nUp}
            data-tip={tipOf(node)}
            style={{ left: `${100 * left}%`, width: `${100 * width}%`, top: `${top * LEVEL_PX}px` }}
            onClick={() => onChoose(node.key)}
          >
            <b>{node.name}</b>
          </button>
        ))}
      </div>
    </section>
  );
}

/** Functions next to the chosen one, each once. */
export function nextTo(all: readonly SideNode[], root: SideNode | undefined): SideNode[] {
  const byKey = new Map<string, SideNode>();
  for (const row of root?.children ?? []) {
    const node = all[row] as SideNode;
    const one = byKey.get(node.key);
    byKey.set(
      node.key,
      one ? { ...one, totalPs: one.totalPs + node.totalPs, calls: one.calls + node.calls } : node,
    );
  }
  return [...byKey.values()].sort((a, b) => b.totalPs - a.totalPs);
}

function Neighbors({
  title,
  nodes,
  onChoose,
}: {
  title: string;
  nodes: readonly SideNode[];
  onChoose: (key: string) => void;
}): VNode | null {
  if (!nodes.length) return null;
  const shown = nodes.slice(0, MOST_ROWS);
  return (
    <table class="fg-table">
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col">Calls</th>
          <th scope="col">Time</th>
        </tr>
      </thead>
      <tbody>
        {shown.map((node) => (
          <tr key={node.key}>
            <td>
              <button type="button" class="text-link" onClick={() => onChoose(node.key)}>
                {node.name}
              </button>{' '}
              <small>{node.place}</small>
            </td>
            <td>{format(node.calls, 'count')}</td>
            <td>{format(node.totalPs, 'ps')}</td>
          </tr>
        ))}
        {nodes.length > shown.length && (
          <tr>
            <td colSpan={3}>
              <small>and {nodes.length - shown.length} more with less time</small>
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

/** The timeline around a call, with half its length on each side. */
function openCall(host: string, event: number, startPs: number, lengthPs: number): void {
  openTool('trace_viewer', {
    hosts: host,
    event: String(event),
    start_ps: String(Math.max(0, Math.round(startPs - lengthPs / 2))),
    end_ps: String(Math.round(startPs + 1.5 * Math.max(lengthPs, 1000))),
  });
}

function LongestCalls({ payload }: { payload: Payload }): VNode | null {
  const calls = readTable(payload, FUNCTION.tables.longest_calls).all().slice(0, MOST_ROWS);
  if (!calls.length) return null;
  const hasTimeline = canOpen('trace_viewer');
  return (
    <table class="fg-table">
      <thead>
        <tr>
          <th scope="col">Longest calls</th>
          <th scope="col">Start</th>
          <th scope="col">Time</th>
        </tr>
      </thead>
      <tbody>
        {calls.map((call, i) => {
          const [event, start, length] = [call.event ?? 0, call.start_ps ?? 0, call.duration_ps ?? 0];
          const text = call.step ? `Step ${call.step}` : 'Outside of steps';
          return (
            <tr key={event}>
              <td>
                {hasTimeline ? (
                  <button
                    type="button"
                    class="text-link"
                    aria-label={`Call ${i + 1} of ${format(length, 'ps')} on the timeline`}
                    onClick={() => openCall(call.host, event, start, length)}
                  >
                    {text}
                  </button>
                ) : (
                  text
                )}
              </td>
              <td>{format(start, 'ps')}</td>
              <td>{format(length, 'ps')}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** The step in which the function takes the most self time, compared with its mean. */
function worstStep(payload: Payload, selfPs: number): { name: string; value: string } | null {
  const steps = readTable(payload, FUNCTION.tables.by_step).all();
  const worst = steps.reduce<(typeof steps)[0] | null>(
    (best, one) => (best === null || (one.self_ps ?? 0) > (best.self_ps ?? 0) ? one : best),
    null,
  );
  if (!worst || steps.length < 2 || !worst.self_ps) return null;
  return {
    name: `Self in ${/^\d/.test(worst.step) ? 'step ' : ''}${worst.step}`,
    value: `${format(worst.self_ps, 'ps')} (${signed(worst.self_ps - selfPs)})`,
  };
}

function Content({ payload, ...props }: PanelProps & { payload: Payload }): VNode {
  const { stepPs, isPerStep, setParams, name } = props;
  const { all, callers, callees } = sidesOf(payload);
  const root = callers[0];
  const [selfPs, totalPs, calls, nCalls] = [
    readNumber(payload, FUNCTION.scalars.self_ps) ?? 0,
    readNumber(payload, FUNCTION.scalars.total_ps) ?? 0,
    readNumber(payload, FUNCTION.scalars.calls) ?? 0,
    readNumber(payload, FUNCTION.scalars.n_calls) ?? 0,
  ];
  const per = isPerStep ? ' per step' : '';
  const share = (ps: number): string =>
    `${format(ps, 'ps')}${per} (${format(ps / Math.max(stepPs, 1), 'fraction')})`;
  const worst = worstStep(payload, selfPs);
  const choose = (key: string): void => setParams({ function: key }, 'push');
  const shownName = root?.name ?? name;
  return (
    <>
      <h2>
        <span>{shownName}</span>{' '}
        <small>
          <Place place={placeOfFrame(name) || (root?.place ?? '')}>{root?.place}</Place>
        </small>{' '}
        {root && <em class={`fg-badge fg-${root.family}`}>{familyTitle(root.family)}</em>}
      </h2>
      <dl class="facts">
        <div>
          <dt>Self</dt>
          <dd>{share(selfPs)}</dd>
        </div>
        <div>
          <dt>Total</dt>
          <dd>{share(totalPs)}</dd>
        </div>
        <div>
          <dt>Calls</dt>
          <dd>
            {format(calls, 'count')}
            {per}, {format(calls ? totalPs / calls : null, 'ps')} each
          </dd>
        </div>
        {worst && (
          <div>
            <dt>{worst.name}</dt>
            <dd>{worst.value}</dd>
          </div>
        )}
      </dl>
      <SourceLines payload={payload} />
      <Sandwich payload={payload} onChoose={choose} />
      <Neighbors title="Callers" nodes={nextTo(all, root)} onChoose={choose} />
      <Neighbors title="Callees" nodes={nextTo(all, callees[0])} onChoose={choose} />
      <LongestCalls payload={payload} />
      <p class="fg-ways">
        {canOpen('trace_viewer') && (
          <button type="button" class="text-link" onClick={() => openTool('trace_viewer', { q: name })}>
            Find all calls on the timeline ({format(nCalls, 'count')} in the steps shown)
          </button>
        )}
        <button type="button" class="text-link" onClick={() => setParams({ q: shownName }, 'push')}>
          Highlight it in the flame graph
        </button>
        {isPerStep && (
          <button type="button" class="text-link" onClick={() => setParams({ against: 'slowest' }, 'push')}>
            Compare with the slowest step
          </button>
        )}
      </p>
    </>
  );
}

export function Panel(props: PanelProps): VNode {
  const { run, hosts, info, params, name, setParams } = props;
  const query: DataQuery = {
    tool: info.name,
    question: 'function',
    run,
    hosts,
    params: { ...selectionParams(info, params), function: name },
  };
  const url = dataUrl(query);
  const { data, error, retry } = useLoaded(url, url, (abort) => fetchPayload(query, 'json', abort));
  const close = (): void => setParams({ function: undefined }, 'push');
  return (
    <aside class="fg-panel" aria-label="Chosen function">
      <button type="button" class="button small fg-close" aria-label="Close the details" onClick={close}>
        ✕
      </button>
      {error ? (
        <Failed what={name} kind={error.kind} message={error.message} remedy={error.remedy} onRetry={retry} />
      ) : data ? (
        <Content {...props} payload={data} />
      ) : (
        <Loading what="Looking at its callers and callees" />
      )}
    </aside>
  );
}
