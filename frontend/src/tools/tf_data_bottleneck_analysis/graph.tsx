/**
 * The stages of one call as a graph: bold on the critical path, red and labeled for the bottleneck, gray and
 * dashed elsewhere.
 */
import type { VNode } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { useToolKeys } from '../../state/keys';
import { Loading } from '../../widgets/states';
import { GraphButtons, useLinkedView, usePlaced } from '../graph_frame';
import { useHands, useSize } from '../graph_hands';
import { mainStage, type Graph as GraphData } from './model';
import { saveImage } from '../graph_image';
import { NODE, type Placed } from './placed';
import { Links, Stages } from './stages';
import { firstView, fitView, revealView, transformOf, zoomView, type Size } from '../graph_viewport';
import { nextStage } from './walk';

const MIN_HEIGHT_PX = 240;
const MAX_HEIGHT_PX = 640;
const PADDING_PX = 16;

const KEYS = [
  { keys: '+ − 0', does: 'Zoom the graph in, out, and to fit' },
  { keys: 'Wheel', does: 'Zoom, after a click into the graph, or with Ctrl' },
  { keys: 'Drag', does: 'Move the graph' },
  { keys: '← ↑ → ↓', does: 'In the graph: to the next stage; ↑ leads to the consumer' },
  { keys: 'Enter', does: 'Details of the stage; Esc closes them' },
];

interface GraphProps {
  graph: GraphData;
  /** The label on the bottleneck's box. */
  badge: string;
  chosen: number | null;
  onChoose: (id: number | null) => void;
  /** The visible part, as URL text. */
  view: string | undefined;
  onView: (view: string | undefined) => void;
}

function roomIn({ width, height }: Size): Size {
  return { width: width - 2 * PADDING_PX, height: height - 2 * PADDING_PX };
}

function Drawing({ placed, height, ...props }: GraphProps & { placed: Placed; height: number }): VNode {
  const { graph, badge, chosen, onChoose } = props;
  const frame = useRef<HTMLDivElement>(null);
  const box = useSize(frame, { width: 900, height });
  const main = placed.at.get(mainStage(graph)?.id ?? -1) ?? { x: placed.width / 2, y: 0 };
  const [view, setView] = useLinkedView(() => firstView(placed, roomIn(box), main), props.view, props.onView);
  const [focus, setFocus] = useState<number | null>(null);
  const fit = (): void => {
    const all = fitView(placed, roomIn(box));
    setView(firstView(placed, roomIn(box), all).scale === all.scale ? null : all);
  };
  useHands(frame, { box, view, setView, fit });
  const tabStop =
    [focus, chosen, mainStage(graph)?.id].find(
      (id) => id !== null && id !== undefined && placed.at.has(id),
    ) ?? null;
  const onKey = (event: KeyboardEvent): void => {
    const id = Number((event.target as Element).getAttribute('data-stage') ?? Number.NaN);
    if (!Number.isInteger(id) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' || event.key === ' ') onChoose(id);
    else {
      const next = nextStage(graph, placed.at, id, event.key);
      const center = next === null ? undefined : placed.at.get(next);
      if (!center) return;
      setFocus(next);
      setView(revealView(view, box, center, NODE));
      frame.current?.querySelector<SVGElement>(`[data-stage="${next}"]`)?.focus({ preventScroll: true });
    }
    event.preventDefault();
  };
  const shapes = useMemo(() => <Links graph={graph} placed={placed} />, [graph, placed]);
  const stages = useMemo(
    () => (
      <Stages
        graph={graph}
        placed={placed}
        badge={badge}
        chosen={chosen}
        tabStop={tabStop}
        onChoose={onChoose}
        onFocus={setFocus}
      />
    ),
    [graph, placed, badge, chosen, tabStop],
  );
  return (
    <div class="graph-frame" ref={frame} tabIndex={-1} style={{ height: `${height}px` }} onKeyDown={onKey}>
      <svg
        width="100%"
        height="100%"
        role="group"
        aria-label={`Pipeline graph, ${graph.stages.length} stages: arrow keys move between them, Enter shows details`}
      >
        <g class="graph-content" transform={transformOf(view, box)}>
          {shapes}
          {stages}
        </g>
      </svg>
      <GraphButtons
        zoom={(factor) => setView(zoomView(view, factor, box))}
        fit={fit}
        save={() => void saveImage(frame.current, placed, 'pipeline_graph.png')}
      />
    </div>
  );
}

export function Graph(props: GraphProps): VNode {
  const state = usePlaced(props.graph, () => import('./layout'));
  const placed = state?.graph === props.graph ? state.placed : null;
  useToolKeys(KEYS);
  const height = placed
    ? Math.round(Math.min(MAX_HEIGHT_PX, Math.max(MIN_HEIGHT_PX, placed.height + 2 * PADDING_PX)))
    : 320;
  if (!placed) return <Loading what="Drawing the graph" bones={[height]} />;
  return <Drawing {...props} placed={placed} height={height} />;
}
