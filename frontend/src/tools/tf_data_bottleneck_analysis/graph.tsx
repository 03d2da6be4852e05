/** The stages of one call as a graph: bold on the critical path, red and named the bottleneck, grey and dashed elsewhere. */
import type { VNode } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useToolKeys } from '../../state/keys';
import { Loading } from '../../widgets/states';
import { useHands, useSize } from '../graph_hands';
import { mainStage, type Graph as GraphData } from './model';
import { saveImage } from '../graph_image';
import { NODE, type Placed } from './placed';
import { Links, Stages } from './stages';
import { firstView, fitView, parseViewText, revealView, transformOf, viewText, zoomView, type Size, type View } from '../graph_viewport';
import { nextStage } from './walk';

const MIN_HEIGHT_PX = 240;
const MAX_HEIGHT_PX = 640;
const PADDING_PX = 16;
const SETTLE_MS = 300;

const KEYS = [
  { keys: '+ − 0', does: 'Zoom the graph in, out, and to all of it' },
  { keys: 'Wheel', does: 'Zoom, after a click into the graph, or with Ctrl' },
  { keys: 'Drag', does: 'Move the graph' },
  { keys: '← ↑ → ↓', does: 'In the graph: to the next stage; ↑ is who asks for data' },
  { keys: 'Enter', does: 'Details of the stage; Esc closes them' },
];

interface GraphProps {
  graph: GraphData;
  chosen: number | null;
  onChoose: (id: number | null) => void;
  /** The part that is seen, as URL text. */
  view: string | undefined;
  onView: (view: string | undefined) => void;
}

function usePlaced(graph: GraphData): Placed | null {
  const [state, setState] = useState<{ graph: GraphData; placed: Placed } | null>(null);
  useEffect(() => {
    let isGone = false;
    void import('./layout').then(({ layoutOf }) => {
      if (!isGone) setState({ graph, placed: layoutOf(graph) });
    });
    return () => {
      isGone = true;
    };
  }, [graph]);
  return state?.graph === graph ? state.placed : null;
}

function roomIn({ width, height }: Size): Size {
  return { width: width - 2 * PADDING_PX, height: height - 2 * PADDING_PX };
}

/** The view: the link's, else what opens by itself; written back to the link when it has come to rest. */
function useView(placed: Placed, graph: GraphData, box: Size, { view: linked, onView }: GraphProps): [View, (view: View | null) => void] {
  const [own, setOwn] = useState<View | null>(() => parseViewText(linked));
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const change = (next: View | null): void => {
    setOwn(next);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onView(next ? viewText(next) : undefined), SETTLE_MS);
  };
  const main = placed.at.get(mainStage(graph)?.id ?? -1) ?? { x: placed.width / 2, y: 0 };
  return [own ?? firstView(placed, roomIn(box), main), change];
}

function Buttons({ zoom, fit, save }: { zoom: (factor: number) => void; fit: () => void; save: () => void }): VNode {
  return (
    <div class="graph-buttons">
      <button type="button" class="button small" aria-label="Zoom in" data-tip="Zoom in  +" onClick={() => zoom(1.25)}>
        +
      </button>
      <button type="button" class="button small" aria-label="Zoom out" data-tip="Zoom out  −" onClick={() => zoom(0.8)}>
        −
      </button>
      <button type="button" class="button small" aria-label="All of the graph" data-tip="All of the graph  0" onClick={fit}>
        Fit
      </button>
      <button type="button" class="button small" aria-label="Save the graph as an image" data-tip="All of the graph as an image" onClick={save}>
        PNG
      </button>
    </div>
  );
}

function Drawing({ placed, height, ...props }: GraphProps & { placed: Placed; height: number }): VNode {
  const { graph, chosen, onChoose } = props;
  const frame = useRef<HTMLDivElement>(null);
  const box = useSize(frame, { width: 900, height });
  const [view, setView] = useView(placed, graph, box, props);
  const [focus, setFocus] = useState<number | null>(null);
  const fit = (): void => {
    const all = fitView(placed, roomIn(box));
    setView(firstView(placed, roomIn(box), all).scale === all.scale ? null : all);
  };
  useHands(frame, { box, view, setView, fit });
  const tabStop = [focus, chosen, mainStage(graph)?.id].find((id) => id !== null && id !== undefined && placed.at.has(id)) ?? null;
  const onKey = (event: KeyboardEvent): void => {
    const id = Number((event.target as Element).getAttribute('data-stage') ?? Number.NaN);
    if (!Number.isInteger(id) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' || event.key === ' ') onChoose(id);
    else {
      const next = nextStage(graph, placed.at, id, event.key);
      const at = next === null ? undefined : placed.at.get(next);
      if (!at) return;
      setFocus(next);
      setView(revealView(view, box, at, NODE));
      frame.current?.querySelector<SVGElement>(`[data-stage="${next}"]`)?.focus({ preventScroll: true });
    }
    event.preventDefault();
  };
  const shapes = useMemo(() => <Links graph={graph} placed={placed} />, [graph, placed]);
  const stages = useMemo(() => <Stages graph={graph} placed={placed} chosen={chosen} tabStop={tabStop} onChoose={onChoose} onFocus={setFocus} />, [graph, placed, chosen, tabStop]);
  return (
    <div class="graph-frame" ref={frame} tabIndex={-1} style={{ height: `${height}px` }} onKeyDown={onKey}>
      <svg width="100%" height="100%" role="group" aria-label={`Pipeline graph, ${graph.stages.length} stages: arrow keys move between them, Enter shows details`}>
        <g class="graph-content" transform={transformOf(view, box)}>
          {shapes}
          {stages}
        </g>
      </svg>
      <Buttons zoom={(factor) => setView(zoomView(view, factor, box))} fit={fit} save={() => void saveImage(frame.current, placed, 'pipeline_graph.png')} />
    </div>
  );
}

export function Graph(props: GraphProps): VNode {
  const placed = usePlaced(props.graph);
  useToolKeys(KEYS);
  const height = placed ? Math.round(Math.min(MAX_HEIGHT_PX, Math.max(MIN_HEIGHT_PX, placed.height + 2 * PADDING_PX))) : 320;
  if (!placed) return <Loading what="Drawing the graph" bones={[height]} />;
  return <Drawing {...props} placed={placed} height={height} />;
}
