/**
 * Draws the graph: scopes as boxes that a click opens and closes, operations in green and red, edges between
 * them; pan, zoom, keys.
 */
import type { VNode } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useToolKeys } from '../../state/keys';
import { Loading } from '../../widgets/states';
import { GraphButtons, usePlaced } from '../graph_frame';
import { useHands, useSize } from '../graph_hands';
import { saveImage } from '../graph_image';
import {
  firstView,
  fitView,
  revealView,
  transformOf,
  viewAround,
  zoomView,
  type Size,
  type View,
} from '../graph_viewport';
import { isWithin, nextItem, type Drawn, type Item } from './drawn';
import type { Box, Placed } from './placed';
import { Arrow, Shapes } from './shapes';

const HEIGHT_PX = 520;
const LEAST_PX = 240;
/** Enough to move about in a wide graph after zooming in. */
const WIDE_PX = 320;

const KEYS = [
  { keys: '+ − 0', does: 'Zoom the drawing in, out, and to fit' },
  { keys: 'Wheel, drag', does: 'Zoom (after a click into the drawing, or with Ctrl); move it' },
  { keys: '← ↑ → ↓', does: 'In the drawing: to the next box' },
  { keys: 'Enter', does: "Open or close the scope, or show the operation's details" },
];

export interface DrawingProps {
  drawn: Drawn;
  chosen: number | null;
  /** Row of the scope selected here or in the tree: it is brought into view. */
  scope: number | null;
  /** A scope was clicked: it opens or closes. */
  onToggle: (item: Item) => void;
  onChoose: (item: Item | null) => void;
}

interface Hold {
  view: View;
  setView: (view: View) => void;
  /** A click on an item: a scope opens or closes and stays under the pointer. */
  act: (item: Item) => void;
}

function useHold(
  { drawn, placed, scope, ...props }: DrawingProps & { placed: Placed },
  box: Size,
  first: View,
): Hold {
  const [own, setOwn] = useState<View | null>(null);
  const view = own ?? first;
  const latest = useRef({ ...props, view, placed });
  latest.current = { ...props, view, placed };
  const held = useRef<{ scope: number; x: number; top: number } | null>(null);
  const placeOf = (row: number | null): Box | undefined => {
    const item =
      row === null
        ? undefined
        : drawn.items.find((candidate) => candidate.kind === 'scope' && candidate.scope === row);
    return item && placed.at.get(item.id);
  };
  /** Centers the item with its surroundings, unless all of it is in view. */
  const reveal = (): void => {
    const target = placeOf(scope);
    if (!target) return;
    setOwn((last) => {
      const now = last ?? first;
      const moved = revealView(now, box, target, target);
      return moved.x === now.x && moved.y === now.y ? last : viewAround(placed, box, target, now.scale);
    });
  };
  useEffect(() => {
    if (!held.current) reveal();
  }, [scope]);
  useEffect(() => {
    const from = held.current;
    held.current = null;
    if (!from) return reveal();
    const box = placeOf(from.scope);
    if (box)
      setOwn(
        (last) =>
          last && { ...last, x: last.x + box.x - from.x, y: last.y + box.y - box.height / 2 - from.top },
      );
  }, [placed]);
  const act = (item: Item): void => {
    const now = latest.current;
    const box = now.placed.at.get(item.id);
    if (item.kind === 'operation') now.onChoose(item.id === now.chosen ? null : item);
    if (item.kind !== 'scope' || !box) return;
    held.current = { scope: item.scope, x: box.x, top: box.y - box.height / 2 };
    setOwn(now.view);
    now.onToggle(item);
  };
  return { view, setView: setOwn, act };
}

/** The frame's height: a wide graph that opens small leaves no empty frame around it. */
function heightFor({ width, height }: Placed, roomPx: number): number {
  const shown = Math.max(WIDE_PX, height * Math.min(1, roomPx / (width || 1)));
  return Math.round(Math.min(HEIGHT_PX, Math.max(LEAST_PX, Math.min(height, shown) + 24)));
}

/** The drawing opens whole down to this scale: colors show what is incompatible. */
const LEAST_WHOLE_SCALE = 0.2;
const PADDING_PX = 20;

/** The part of the box that a fitted drawing fills: some links run beyond its outermost boxes. */
function roomIn({ width, height }: Size): Size {
  return { width: width - 2 * PADDING_PX, height: height - 2 * PADDING_PX };
}

function Placing(props: DrawingProps & { placed: Placed }): VNode {
  const { drawn, placed, chosen, scope } = props;
  const frame = useRef<HTMLDivElement>(null);
  const box = useSize(frame, { width: 900, height: HEIGHT_PX });
  const worst = drawn.items.find((item) => item.kind === 'operation' && item.nInvalid > 0) ?? drawn.items[0];
  // A link may name an operation: the first view is around it. A click later moves nothing.
  const linked = useRef(chosen).current;
  const middle = [linked, worst?.id].map((id) => placed.at.get(id ?? -1)).find(Boolean) ?? {
    x: placed.width / 2,
    y: placed.height / 2,
  };
  const { view, setView, act } = useHold(
    props,
    box,
    firstView(placed, roomIn(box), middle, LEAST_WHOLE_SCALE),
  );
  const [focus, setFocus] = useState<number>(drawn.items[0]?.id ?? 0);
  const fit = (): void => setView(fitView(placed, roomIn(box)));
  useHands(frame, { box, view, setView, fit });
  const onKey = (event: KeyboardEvent): void => {
    const item = drawn.items[Number((event.target as Element).getAttribute('data-item') ?? Number.NaN)];
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' || event.key === ' ') act(item);
    else {
      const others = new Map(
        [...placed.at].filter(([id]) => !isWithin(drawn.items, id, item.id) && id !== item.frame),
      );
      const next = nextItem(others, item.id, event.key);
      const center = next === null ? undefined : placed.at.get(next);
      if (!center) return;
      setFocus(next ?? 0);
      setView(revealView(view, box, center, center));
      frame.current?.querySelector<SVGElement>(`[data-item="${next}"]`)?.focus({ preventScroll: true });
    }
    event.preventDefault();
  };
  const shapes = useMemo(
    () => <Shapes {...{ drawn, placed, chosen, scope, focus, act }} />,
    [drawn, placed, chosen, scope, focus],
  );
  return (
    <div
      class="td-box"
      ref={frame}
      tabIndex={-1}
      style={{ height: `${heightFor(placed, box.width)}px` }}
      onKeyDown={onKey}
    >
      <svg
        width="100%"
        height="100%"
        role="group"
        aria-label={`Graph of ${drawn.items.length} boxes and operations: arrow keys move between them, Enter opens a scope`}
      >
        <Arrow />
        <g class="graph-content" transform={transformOf(view, box)}>
          {shapes}
        </g>
      </svg>
      <GraphButtons
        zoom={(factor) => setView(zoomView(view, factor, box))}
        fit={fit}
        save={() => void saveImage(frame.current, placed, 'tpu_compatibility.png')}
      />
    </div>
  );
}

export function Drawing(props: DrawingProps): VNode {
  const state = usePlaced(props.drawn, () => import('./layout'));
  useToolKeys(KEYS);
  if (!state) return <Loading what="Drawing the graph" bones={[HEIGHT_PX]} />;
  return <Placing {...props} drawn={state.graph} placed={state.placed} />;
}
