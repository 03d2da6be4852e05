/**
 * The tree as a flame: a box per node, as wide as its time, colored by device utilization; a click zooms in
 * or chooses.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { boxesOf } from './model';
import { tipOf, ZoomPath, type ZoomedTree } from './zoom_path';

const LEVEL_PX = 22;

export function Flame({ nodes, zoomed, coloring, chosen, onZoom, onChoose }: ZoomedTree): VNode {
  const boxes = useMemo(() => boxesOf(nodes, zoomed), [nodes, zoomed]);
  const levels = Math.max(1, ...boxes.map((box) => box.level + 1));
  return (
    <>
      <ZoomPath nodes={nodes} zoomed={zoomed} onZoom={onZoom} />
      <div class="op-flame" style={{ height: `${levels * LEVEL_PX}px` }}>
        {boxes.map(({ node, left, width, level }) => {
          return (
            <button
              key={node.row}
              type="button"
              class={node.isEstimate ? 'op-box estimate' : 'op-box'}
              aria-pressed={chosen(node)}
              data-tip={tipOf(node)}
              style={{
                left: `${left * 100}%`,
                width: `${width * 100}%`,
                top: `${level * LEVEL_PX}px`,
                '--box': `var(${coloring.token(node)})`,
              }}
              onClick={() => (node.kind === 'op' ? onChoose(node) : node.children.length && onZoom(node.row))}
            >
              {node.isEstimate ? `≈ ${node.name}` : node.name}
            </button>
          );
        })}
      </div>
    </>
  );
}
