/**
 * Places the stages of a call: the root, which the training loop calls, on top, and under each stage those that feed it.
 * A chunk of its own, with dagre, loaded when the first graph is on screen.
 */
import { Graph as Dagre, layout as place } from '@dagrejs/dagre';
import type { Graph } from './model';
import { NODE, type Placed, type Point } from './placed';

const MARGIN = 14;
const BESIDE_PX = 24;
const BELOW_PX = 38;

/** From the bottom of the consumer to the top of the producer, smoothly through the points between. */
function pathOf(from: Point, to: Point, between: readonly Point[]): string {
  const points = [{ x: from.x, y: from.y + NODE.height / 2 }, ...between, { x: to.x, y: to.y - NODE.height / 2 }];
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

export function layoutOf({ stages, links }: Graph): Placed {
  const dagre = new Dagre({ multigraph: true });
  dagre.setGraph({ rankdir: 'TB', nodesep: BESIDE_PX, ranksep: BELOW_PX, marginx: MARGIN, marginy: MARGIN });
  dagre.setDefaultEdgeLabel(() => ({}));
  for (const { id } of stages) dagre.setNode(String(id), { ...NODE });
  // Links of the critical path are the ones to keep straight.
  links.forEach(({ from, to, isCritical }, i) => dagre.setEdge(String(from), String(to), { weight: isCritical ? 8 : 1 }, String(i)));
  place(dagre);
  const at = new Map(stages.map(({ id }) => [id, pointOf(dagre.node(String(id)))]));
  const paths = links.map(({ from, to }, i) => {
    const points = (dagre.edge({ v: String(from), w: String(to), name: String(i) }) as { points?: Point[] } | undefined)?.points ?? [];
    return pathOf(at.get(from) ?? { x: 0, y: 0 }, at.get(to) ?? { x: 0, y: 0 }, points.length > 3 ? points.slice(1, -1) : []);
  });
  const { width = 0, height = 0 } = dagre.graph() as { width?: number; height?: number };
  return { width, height, at, paths };
}

function pointOf({ x, y }: { x?: number; y?: number }): Point {
  return { x: x ?? 0, y: y ?? 0 };
}
