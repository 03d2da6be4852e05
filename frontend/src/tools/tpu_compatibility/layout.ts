/**
 * Places boxes and operations with dagre: producers above consumers, an open scope as a frame. A separate
 * chunk.
 */
import { Graph as Dagre, layout } from '@dagrejs/dagre';
import { smoothPath } from '../graph_viewport';
import type { Drawn } from './drawn';
import { sizeOf, type Box, type Link, type Placed, type Point } from './placed';

const MARGIN = 14;

function boxOf(placedNode: unknown): Box {
  const { x = 0, y = 0, width = 0, height = 0 } = (placedNode ?? {}) as Partial<Box>;
  return { x, y, width, height };
}

export function layoutOf({ items, edges }: Drawn): Placed {
  const dagre = new Dagre({ compound: true, multigraph: true });
  dagre.setGraph({ rankdir: 'TB', nodesep: 14, ranksep: 30, marginx: MARGIN, marginy: MARGIN });
  dagre.setDefaultEdgeLabel(() => ({}));
  for (const item of items) dagre.setNode(String(item.id), item.isOpen ? {} : sizeOf(item));
  for (const item of items) if (item.frame >= 0) dagre.setParent(String(item.id), String(item.frame));
  edges.forEach(({ from, to }, i) => {
    if (!items[from]?.isOpen && !items[to]?.isOpen) dagre.setEdge(String(from), String(to), {}, String(i));
  });
  layout(dagre);
  const links: Link[] = edges.flatMap((edge, i) => {
    const placedEdge = dagre.edge({ v: String(edge.from), w: String(edge.to), name: String(i) }) as
      { points?: Point[] } | undefined;
    return placedEdge?.points ? [{ edge, path: smoothPath(placedEdge.points) }] : [];
  });
  const { width = 0, height = 0 } = dagre.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    at: new Map(items.map(({ id }) => [id, boxOf(dagre.node(String(id)))] as const)),
    links,
  };
}
