/**
 * Places the stages of a call: the root, which the training loop calls, on top, and under each stage its
 * producers. A separate chunk, with dagre, loaded when the first graph is on screen.
 */
import { Graph as Dagre, layout } from '@dagrejs/dagre';
import { smoothPath } from '../graph_viewport';
import type { Graph } from './model';
import { NODE, type Placed, type Point } from './placed';

const MARGIN = 14;
const BESIDE_PX = 24;
const BELOW_PX = 38;

/** From the bottom of the consumer to the top of the producer, smoothly through the points between. */
function pathOf(from: Point, to: Point, between: readonly Point[]): string {
  return smoothPath([
    { x: from.x, y: from.y + NODE.height / 2 },
    ...between,
    { x: to.x, y: to.y - NODE.height / 2 },
  ]);
}

/** Layout priority of a link: the path to the bottleneck comes before the rest of the critical path. */
function priorities({ stages, links }: Graph): Map<number, number> {
  const priority = new Map(stages.map(({ id, isCritical }) => [id, isCritical ? 1 : 0]));
  const consumer = new Map(links.map(({ from, to }) => [to, from]));
  let current = stages.find(({ isBottleneck }) => isBottleneck)?.id;
  for (let n = 0; current !== undefined && n <= stages.length; n++, current = consumer.get(current))
    priority.set(current, 2);
  return priority;
}

/**
 * The stages in the order of a walk from the roots, by priority; null if some stage has two
 * consumers or there is a cycle. In this order the links of a tree do not cross, and dagre, instructed to
 * keep it, draws the critical path as a straight line:
 *
 *     root ┐               its own search for an order turns the tree round
 *     map  ┤ file          at each try, and the path wanders from side to side
 *     read ┘ cache
 */
function walkOrder({ stages, links }: Graph): number[] | null {
  const below = new Map<number, number[]>(stages.map(({ id }) => [id, []]));
  const fed = new Set<number>();
  for (const { from, to } of links) {
    if (fed.has(to)) return null;
    fed.add(to);
    below.get(from)?.push(to);
  }
  const priority = priorities({ stages, links });
  for (const ids of below.values()) ids.sort((a, b) => (priority.get(b) ?? 0) - (priority.get(a) ?? 0));
  const order: number[] = [];
  const waiting = stages
    .map(({ id }) => id)
    .filter((id) => !fed.has(id))
    .reverse();
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    order.push(id);
    waiting.push(...[...(below.get(id) ?? [])].reverse());
  }
  return order.length === stages.length ? order : null;
}

export function layoutOf(graph: Graph): Placed {
  const { stages, links } = graph;
  const order = walkOrder(graph);
  const place = new Map((order ?? []).map((id, i) => [id, i]));
  const byOrder = links
    .map((link, i) => ({ ...link, i }))
    .sort((a, b) => (place.get(a.to) ?? 0) - (place.get(b.to) ?? 0));
  const dagre = new Dagre({ multigraph: true });
  dagre.setGraph({
    rankdir: 'TB',
    nodesep: BESIDE_PX,
    ranksep: BELOW_PX,
    marginx: MARGIN,
    marginy: MARGIN,
    ...(order ? { align: 'UL' } : {}),
  });
  dagre.setDefaultEdgeLabel(() => ({}));
  for (const id of order ?? stages.map((stage) => stage.id)) dagre.setNode(String(id), { ...NODE });
  for (const { from, to, isCritical, i } of byOrder)
    dagre.setEdge(String(from), String(to), { weight: isCritical ? 8 : 1 }, String(i));
  layout(dagre, { disableOptimalOrderHeuristic: order !== null });
  const centers = new Map(stages.map(({ id }) => [id, pointOf(dagre.node(String(id)))]));
  const paths = links.map(({ from, to }, i) => {
    const points =
      (dagre.edge({ v: String(from), w: String(to), name: String(i) }) as { points?: Point[] } | undefined)
        ?.points ?? [];
    return pathOf(
      centers.get(from) ?? { x: 0, y: 0 },
      centers.get(to) ?? { x: 0, y: 0 },
      points.length > 3 ? points.slice(1, -1) : [],
    );
  });
  const { width = 0, height = 0 } = dagre.graph() as { width?: number; height?: number };
  return { width, height, at: centers, paths };
}

function pointOf({ x, y }: { x?: number; y?: number }): Point {
  return { x: x ?? 0, y: y ?? 0 };
}
