/**
 * The visible part of the graph: the graph's point in the middle of the box, and pixels per unit of the
 * graph. Pure.
 */

export interface View {
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

const MIN_SCALE = 0.05;
const MAX_SCALE = 3;
/** A graph that fits at this scale opens whole: its shape is clear, and larger names can be read. */
const LEAST_WHOLE_SCALE = 0.4;
/** A larger one opens at this scale, so that names are legible. */
const LEGIBLE_SCALE = 0.62;
const NATURAL_SCALE = 1;

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/** The whole graph, no larger than its natural size. */
export function fitView(graph: Size, box: Size): View {
  const scale = clamp(
    Math.min(box.width / (graph.width || 1), box.height / (graph.height || 1)),
    MIN_SCALE,
    NATURAL_SCALE,
  );
  return { x: graph.width / 2, y: graph.height / 2, scale };
}

/**
 * The whole graph if it is not too large, else the surroundings of a point at a legible scale, without wasting
 * room beyond the graph's edges.
 */
export function firstView(
  graph: Size,
  box: Size,
  around: { x: number; y: number },
  leastWhole = LEAST_WHOLE_SCALE,
): View {
  const all = fitView(graph, box);
  return all.scale >= leastWhole ? all : viewAround(graph, box, around, LEGIBLE_SCALE);
}

/** The surroundings of a point at a scale, without wasting room beyond the graph's edges. */
export function viewAround(graph: Size, box: Size, around: { x: number; y: number }, scale: number): View {
  const along = (position: number, length: number, room: number): number => {
    const half = room / scale / 2;
    return length <= 2 * half ? length / 2 : clamp(position, half, length - half);
  };
  return { x: along(around.x, graph.width, box.width), y: along(around.y, graph.height, box.height), scale };
}

/** Zooms so that the graph's point under a pixel of the box stays there. */
export function zoomView(view: View, factor: number, box: Size, px?: { x: number; y: number }): View {
  const scale = clamp(view.scale * factor, MIN_SCALE, MAX_SCALE);
  const [fromX, fromY] = px ? [px.x - box.width / 2, px.y - box.height / 2] : [0, 0];
  const moved = 1 / view.scale - 1 / scale;
  return { x: view.x + fromX * moved, y: view.y + fromY * moved, scale };
}

export function panView(view: View, xPx: number, yPx: number): View {
  return { ...view, x: view.x - xPx / view.scale, y: view.y - yPx / view.scale };
}

/** Moves as little as needed to bring a rectangle around a point into the box. */
export function revealView(view: View, box: Size, center: { x: number; y: number }, size: Size): View {
  const shift = (middle: number, target: number, room: number, length: number): number => {
    const slack = Math.max(0, room / view.scale / 2 - length / 2 - 8);
    return clamp(middle, target - slack, target + slack);
  };
  return {
    ...view,
    x: shift(view.x, center.x, box.width, size.width),
    y: shift(view.y, center.y, box.height, size.height),
  };
}

export function transformOf(view: View, box: Size): string {
  return `translate(${box.width / 2 - view.x * view.scale} ${box.height / 2 - view.y * view.scale}) scale(${view.scale})`;
}

/** Parses "120,80,0.75" and back; null: not a view. */
export function viewText({ x, y, scale }: View): string {
  return `${Math.round(x)},${Math.round(y)},${Number(scale.toPrecision(3))}`;
}

export function parseViewText(text: string | undefined): View | null {
  const parts = (text ?? '').split(',').map(Number);
  const [x, y, scale] = parts;
  if (parts.length !== 3 || !parts.every(Number.isFinite) || x === undefined || y === undefined || !scale)
    return null;
  return { x, y, scale: clamp(scale, MIN_SCALE, MAX_SCALE) };
}

/** A smooth link through points: down out of each and down into the next. */
export function smoothPath(points: readonly { x: number; y: number }[]): string {
  const round = (value: number): number => Math.round(value * 10) / 10;
  return points
    .map(({ x, y }, i) => {
      const last = points[i - 1];
      if (!last) return `M${round(x)} ${round(y)}`;
      const middle = round((last.y + y) / 2);
      return `C${round(last.x)} ${middle} ${round(x)} ${middle} ${round(x)} ${round(y)}`;
    })
    .join('');
}
