/**
 * The graph as SVG: nodes by class with their time, values with their shapes, opened fusions in frames; pan,
 * zoom, keys.
 */
import type { VNode } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { useToolKeys } from '../../state/keys';
import { Loading } from '../../widgets/states';
import { GraphButtons, useLinkedView, usePlaced } from '../graph_frame';
import { useHands, useSize } from '../graph_hands';
import { saveImage } from '../graph_image';
import {
  fitView,
  revealView,
  transformOf,
  viewAround,
  zoomView,
  type Size,
  type View,
} from '../graph_viewport';
import {
  classToken,
  hiddenOperands,
  hiddenUsers,
  nextNode,
  shapeOf,
  shortened,
  timeOf,
  type Graph,
  type Node,
} from './model';
import { MOST_NAME, type Frame, type Link, type Placed, type Point } from './placed';

const HEIGHT_PX = 560;
const PADDING_PX = 12;
const TITLE_PX = 14;
/** A graph that fits at this scale opens whole; of a larger one a part opens, at a scale that is easy to read. */
const LEAST_WHOLE_SCALE = 0.5;
const READABLE_SCALE = 0.85;

const KEYS = [
  { keys: '+ − 0', does: 'Zoom the graph in, out, and to fit' },
  { keys: 'Wheel, drag', does: 'Zoom (after a click into the graph, or with Ctrl); move the graph' },
  { keys: '← ↑ → ↓', does: 'In the graph: to the next instruction; ↑ leads to the producer' },
  { keys: 'Enter', does: 'Details of the instruction; Shift+Enter or a double click walks there' },
];

export interface DrawingProps {
  graph: Graph;
  chosen: number | null;
  onChoose: (id: number | null) => void;
  onWalk: (name: string) => void;
  view: string | undefined;
  onView: (view: string | undefined) => void;
}

function LinkShape({ link, isMarked }: { link: Link; isMarked: boolean }): VNode {
  return (
    <g class={isMarked ? 'gv-link marked' : 'gv-link'}>
      <path d={link.path} marker-end={`url(#gv-arrow${isMarked ? '-marked' : ''})`} />
      {link.label && (
        <text x={link.label.x} y={link.label.y + 3} text-anchor="middle">
          {shortened(link.edge.shape, 30)}
          <title>{link.edge.shape}</title>
        </text>
      )}
    </g>
  );
}

function FrameShape({ frame, onChoose }: { frame: Frame; onChoose: (id: number) => void }): VNode {
  const { node, x, y, width, height } = frame;
  return (
    <g class="gv-frame" onClick={() => onChoose(node.id)}>
      <rect x={x - width / 2} y={y - height / 2 - TITLE_PX} width={width} height={height + TITLE_PX} rx={8} />
      <text x={x - width / 2 + 10} y={y - height / 2}>
        {shortened(`${node.name} ${node.kind} ${timeOf(node)}`, Math.max(8, Math.floor((width - 16) / 7.6)))}
      </text>
    </g>
  );
}

interface NodeProps {
  node: Node;
  box: { x: number; y: number; width: number; height: number };
  hottest: number;
  isCenter: boolean;
  isChosen: boolean;
  isTabStop: boolean;
  onChoose: (id: number) => void;
  onWalk: (name: string) => void;
}

/** The number of neighbors not shown, in a corner of the box: outside it would overlap the arrows. */
function More({ text, x, y, title }: { text: string; x: number; y: number; title: string }): VNode | null {
  if (!text) return null;
  return (
    <text class="gv-more" x={x} y={y} text-anchor="end">
      {text}
      <title>{title}</title>
    </text>
  );
}

function NodeShape({
  node,
  box,
  hottest,
  isCenter,
  isChosen,
  isTabStop,
  onChoose,
  onWalk,
}: NodeProps): VNode {
  const [left, top] = [box.x - box.width / 2, box.y - box.height / 2];
  const time = timeOf(node);
  const heat = hottest > 0 && node.timePs !== null ? node.timePs / hottest : 0;
  const words = `${node.name}, ${node.opcode}, ${node.shape}${time ? `, ${time}` : ''}`;
  return (
    <g
      class={`gv-node${isCenter ? ' center' : ''}${isChosen ? ' chosen' : ''}`}
      data-node={node.id}
      tabindex={isTabStop ? 0 : -1}
      role="button"
      aria-label={words}
      aria-pressed={isChosen}
      onClick={() => onChoose(node.id)}
      onDblClick={() => onWalk(node.name)}
    >
      <title>{`${node.name} = ${node.shape} ${node.opcode}${node.opName ? `\n${node.opName}` : ''}${time ? `\n${time}` : ''}`}</title>
      <rect class="box" x={left} y={top} width={box.width} height={box.height} rx={6} />
      <rect
        x={left}
        y={top}
        width={5}
        height={box.height}
        rx={2}
        style={{ fill: `var(${classToken(node.opClass)})` }}
      />
      <text class="name" x={left + 13} y={top + 18}>
        {shortened(node.name, MOST_NAME)}
      </text>
      <text class="shape" x={left + 13} y={top + 34}>
        {shapeOf(node)}
      </text>
      {time && (
        <>
          <text class="shape" x={left + 13} y={top + 50}>
            {time}
          </text>
          <rect
            class="heat"
            x={left + 5}
            y={top + box.height - 4}
            width={Math.max(0, (box.width - 5) * heat)}
            height={4}
          />
        </>
      )}
      <More
        text={hiddenOperands(node)}
        x={left + box.width - 7}
        y={top + 18}
        title={`${node.nHiddenOperands} more operands: double-click to walk here`}
      />
      <More
        text={hiddenUsers(node)}
        x={left + box.width - 7}
        y={top + box.height - 10}
        title={`${node.nHiddenUsers} more users: double-click to walk here`}
      />
    </g>
  );
}

function Arrows(): VNode {
  const arrow = (id: string): VNode => (
    <marker id={id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
      <path d="M0 0L8 4L0 8z" />
    </marker>
  );
  return (
    <defs class="gv-arrows">
      {arrow('gv-arrow')}
      {arrow('gv-arrow-marked')}
    </defs>
  );
}

/** The whole graph if it is not too large, else the surroundings of the central instruction. */
function openingView(placed: Placed, room: Size, middle: Point): View {
  const all = fitView(placed, room);
  return all.scale >= LEAST_WHOLE_SCALE ? all : viewAround(placed, room, middle, READABLE_SCALE);
}

function Shapes({
  graph,
  placed,
  chosen,
  focus,
  onChoose,
  onWalk,
}: Pick<DrawingProps, 'graph' | 'chosen' | 'onChoose' | 'onWalk'> & {
  placed: Placed;
  focus: number | null;
}): VNode {
  const hottest = graph.nodes.reduce((most, { timePs }) => Math.max(most, timePs ?? 0), 0);
  const stop =
    [focus, chosen, graph.center].find((id) => id !== null && placed.at.has(id)) ?? graph.nodes[0]?.id;
  return (
    <>
      {placed.frames.map((frame) => (
        <FrameShape key={frame.node.id} frame={frame} onChoose={onChoose} />
      ))}
      {placed.links.map((link, i) => (
        <LinkShape
          key={i}
          link={link}
          isMarked={chosen !== null && (link.edge.from === chosen || link.edge.to === chosen)}
        />
      ))}
      {graph.nodes.map((node) => {
        const box = placed.at.get(node.id);
        if (!box || node.isFrame) return null;
        const state = {
          isCenter: node.id === graph.center,
          isChosen: node.id === chosen,
          isTabStop: node.id === stop,
        };
        return <NodeShape key={node.id} {...{ node, box, hottest, onChoose, onWalk }} {...state} />;
      })}
    </>
  );
}

function Placing({ placed, ...props }: DrawingProps & { placed: Placed }): VNode {
  const { graph, chosen, onChoose, onWalk } = props;
  const frame = useRef<HTMLDivElement>(null);
  const box = useSize(frame, { width: 900, height: HEIGHT_PX });
  const room = { width: box.width - 2 * PADDING_PX, height: box.height - 2 * PADDING_PX };
  const middle = placed.at.get(graph.center) ?? { x: placed.width / 2, y: placed.height / 2 };
  const [view, setView] = useLinkedView(() => openingView(placed, room, middle), props.view, props.onView);
  const [focus, setFocus] = useState<number | null>(null);
  const fit = (): void => setView(fitView(placed, room));
  useHands(frame, { box, view, setView, fit });
  const onKey = (event: KeyboardEvent): void => {
    const id = Number((event.target as Element).getAttribute('data-node') ?? Number.NaN);
    const node = graph.nodes.find((candidate) => candidate.id === id);
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' && event.shiftKey) onWalk(node.name);
    else if (event.key === 'Enter' || event.key === ' ') onChoose(id);
    else {
      const next = nextNode(graph, placed.at, id, event.key);
      const center = next === null ? undefined : placed.at.get(next);
      if (!center) return;
      setFocus(next);
      setView(revealView(view, box, center, center));
      frame.current?.querySelector<SVGElement>(`[data-node="${next}"]`)?.focus({ preventScroll: true });
    }
    event.preventDefault();
  };
  const shapes = useMemo(
    () => <Shapes {...{ graph, placed, chosen, focus, onChoose, onWalk }} />,
    [graph, placed, chosen, focus],
  );
  return (
    <div
      class="gv-frame-box"
      ref={frame}
      tabIndex={-1}
      style={{ height: `${HEIGHT_PX}px` }}
      onKeyDown={onKey}
    >
      <svg
        width="100%"
        height="100%"
        role="group"
        aria-label={`Graph of ${graph.nodes.length} instructions: arrow keys move between them, Enter shows details`}
      >
        <Arrows />
        <g class="graph-content" transform={transformOf(view, box)}>
          {shapes}
        </g>
      </svg>
      <GraphButtons
        zoom={(factor) => setView(zoomView(view, factor, box))}
        fit={fit}
        save={() => void saveImage(frame.current, placed, 'program_graph.png')}
      />
    </div>
  );
}

export function Drawing(props: DrawingProps): VNode {
  const state = usePlaced(props.graph, () => import('./layout'));
  useToolKeys(KEYS);
  if (!state) return <Loading what="Drawing the graph" bones={[HEIGHT_PX]} />;
  // While the same graph with its times is being placed, the one without stays: the key is the request.
  return <Placing {...props} {...state} />;
}
