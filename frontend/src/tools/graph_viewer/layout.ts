/**
 * Places nodes with dagre: producers above consumers, the instructions of an opened fusion in a frame. A
 * separate chunk, loaded when needed.
 */
import { Graph as Dagre, layout } from '@dagrejs/dagre';
import { smoothPath } from '../graph_viewport';
import type { Graph, Node } from './model';
import { heightOf, widthOf, type Frame, type Placed, type Point } from './placed';

const MARGIN = 16;
const LABELS_UP_TO = 70;
const LABEL_PX = 6;

interface Box extends Point {
  width: number;
  height: number;
}

function dagreOf({ nodes, edges }: Graph, withLabels: boolean): Dagre {
  const dagre = new Dagre({ multigraph: true, compound: true });
  dagre.setGraph({
    rankdir: 'TB',
    nodesep: 22,
    ranksep: withLabels ? 26 : 34,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  dagre.setDefaultEdgeLabel(() => ({}));
  const isDrawn = new Set(nodes.map(({ frame }) => frame));
  for (const node of nodes) {
    if (node.isFrame) {
      if (isDrawn.has(node.id)) dagre.setNode(`f${node.id}`, {});
    } else dagre.setNode(String(node.id), { width: widthOf(node), height: heightOf(node) });
  }
  for (const node of nodes)
    if (node.frame >= 0 && !node.isFrame && dagre.hasNode(`f${node.frame}`))
      dagre.setParent(String(node.id), `f${node.frame}`);
  edges.forEach(({ from, to, shape }, i) => {
    const label = withLabels
      ? { width: Math.min(30, shape.length) * LABEL_PX, height: 14, labelpos: 'c' as const }
      : {};
    dagre.setEdge(String(from), String(to), label, String(i));
  });
  return dagre;
}

function boxOf(placedNode: unknown): Box {
  const { x = 0, y = 0, width = 0, height = 0 } = (placedNode ?? {}) as Partial<Box>;
  return { x, y, width, height };
}

export function layoutOf(graph: Graph): Placed {
  const withLabels = graph.edges.length <= LABELS_UP_TO;
  const dagre = dagreOf(graph, withLabels);
  layout(dagre);
  const isNode = ({ isFrame }: Node): boolean => !isFrame;
  const at = new Map(
    graph.nodes.filter(isNode).map(({ id }) => [id, boxOf(dagre.node(String(id)))] as const),
  );
  const frames: Frame[] = graph.nodes
    .filter(({ id, isFrame }) => isFrame && dagre.hasNode(`f${id}`))
    .map((node) => ({ node, ...boxOf(dagre.node(`f${node.id}`)) }));
  const links = graph.edges.map((edge, i) => {
    const placedEdge = dagre.edge({ v: String(edge.from), w: String(edge.to), name: String(i) }) as
      { points?: Point[]; x?: number; y?: number } | undefined;
    const label =
      withLabels && placedEdge?.x !== undefined && placedEdge.y !== undefined
        ? { x: placedEdge.x, y: placedEdge.y }
        : null;
    return { edge, path: smoothPath(placedEdge?.points ?? []), label };
  });
  const { width = 0, height = 0 } = dagre.graph() as { width?: number; height?: number };
  return { width, height, at, frames, links };
}
