/** The tree as a flame: a box per node, as wide as its time, coloured by how well the device is used; a click zooms in or chooses. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { format } from '../../base/units';
import { bandToken, boxesOf, type OpNode } from './model';

const LEVEL_PX = 22;

export interface FlameProps {
  nodes: readonly OpNode[];
  zoomed: number;
  by: 'flops' | 'hbm';
  chosen: (node: OpNode) => boolean;
  onZoom: (row: number) => void;
  onChoose: (node: OpNode) => void;
}

export function Flame({ nodes, zoomed, by, chosen, onZoom, onChoose }: FlameProps): VNode {
  const boxes = useMemo(() => boxesOf(nodes, zoomed), [nodes, zoomed]);
  const levels = Math.max(1, ...boxes.map((box) => box.level + 1));
  const top = nodes[zoomed] ?? nodes[0];
  const above: OpNode[] = [];
  for (let at = nodes[top?.parent ?? -1]; at; at = nodes[at.parent]) above.unshift(at);
  return (
    <>
      <nav class="op-path" aria-label="Zoomed into">
        {above.map((node) => (
          <button key={node.row} type="button" class="link" onClick={() => onZoom(node.row)}>
            {node.name} ›
          </button>
        ))}
        <b>{top?.name}</b>
      </nav>
      <div class="op-flame" style={{ height: `${levels * LEVEL_PX}px` }}>
        {boxes.map(({ node, left, width, level }) => {
          const used = by === 'flops' ? node.flopsUsed : node.hbmUsed;
          const tip = [node.name, `${format(node.timePs, 'ps')}, ${format(node.share, 'fraction')}`, `FLOPS ${format(node.flopsUsed, 'fraction')}, HBM ${format(node.hbmUsed, 'fraction')}`, node.provenance];
          return (
            <button
              key={node.row}
              type="button"
              class="op-box"
              aria-pressed={chosen(node)}
              data-tip={tip.filter(Boolean).join('\n')}
              style={{ left: `${left * 100}%`, width: `${width * 100}%`, top: `${level * LEVEL_PX}px`, '--box': `var(${node.kind === 'idle' ? '--c-idle' : bandToken(used)})` }}
              onClick={() => (node.children.length ? onZoom(node.row) : node.kind === 'op' && onChoose(node))}
            >
              {node.name}
            </button>
          );
        })}
      </div>
    </>
  );
}
