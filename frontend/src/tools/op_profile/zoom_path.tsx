/** Shared by flame and treemap: the path to the zoomed node, and the tooltip of a box. */
import type { VNode } from 'preact';
import { format } from '../../base/units';
import type { Coloring, OpNode } from './model';

/** What the flame and the treemap draw: the tree below one node, and the effects of clicks. */
export interface ZoomedTree {
  nodes: readonly OpNode[];
  zoomed: number;
  coloring: Coloring;
  chosen: (node: OpNode) => boolean;
  onZoom: (row: number) => void;
  onChoose: (node: OpNode) => void;
}

export function tipOf(node: OpNode): string {
  if (node.isEstimate)
    return [
      node.name,
      `about ${format(node.timePs, 'ps')}: estimated from FLOPs, not measured`,
      node.provenance,
    ]
      .filter(Boolean)
      .join('\n');
  const used =
    node.kind === 'idle'
      ? ''
      : `FLOPS ${format(node.flopsUsed, 'fraction')}, HBM ${format(node.hbmUsed, 'fraction')}`;
  return [node.name, `${format(node.timePs, 'ps')}, ${format(node.share, 'fraction')}`, used, node.provenance]
    .filter(Boolean)
    .join('\n');
}

export function ZoomPath({
  nodes,
  zoomed,
  onZoom,
}: {
  nodes: readonly OpNode[];
  zoomed: number;
  onZoom: (row: number) => void;
}): VNode {
  const top = nodes[zoomed] ?? nodes[0];
  const above: OpNode[] = [];
  for (let ancestor = nodes[top?.parent ?? -1]; ancestor; ancestor = nodes[ancestor.parent])
    above.unshift(ancestor);
  return (
    <nav class="op-path" aria-label="Zoomed into">
      {above.map((node) => (
        <button key={node.row} type="button" class="link" onClick={() => onZoom(node.row)}>
          {node.name} ›
        </button>
      ))}
      <b>{top?.name}</b>
    </nav>
  );
}
