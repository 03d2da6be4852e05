/**
 * The tree as a treemap: a tile per node, as large as its time, on the tile of its parent; colored by device
 * utilization.
 */
import type { VNode } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { useSize } from '../graph_hands';
import { tilesOf, type Coloring, type OpNode, type Tile } from './model';
import { tipOf, ZoomPath, type ZoomedTree } from './zoom_path';

const HEIGHT_PX = 520;
const NAME_FROM = { width: 34, height: 15 };

function TileBox({
  tile,
  coloring,
  isChosen,
  onClick,
}: {
  tile: Tile;
  coloring: Coloring;
  isChosen: boolean;
  onClick: () => void;
}): VNode {
  const { node, x, y, width, height, isFrame } = tile;
  const style = {
    left: `${x}px`,
    top: `${y}px`,
    width: `${Math.max(1, width - 1)}px`,
    height: `${Math.max(1, height - 1)}px`,
    '--box': `var(${coloring.token(node)})`,
  };
  return (
    <button
      type="button"
      class={`op-tile${isFrame ? ' frame' : ''}${node.isEstimate ? ' estimate' : ''}`}
      aria-label={node.name}
      aria-pressed={isChosen}
      data-tip={tipOf(node)}
      style={style}
      onClick={onClick}
    >
      {width >= NAME_FROM.width && height >= NAME_FROM.height && (
        <span>{`${node.isEstimate ? '≈ ' : ''}${node.name}`}</span>
      )}
    </button>
  );
}

export function Treemap({ nodes, zoomed, coloring, chosen, onZoom, onChoose }: ZoomedTree): VNode {
  const box = useRef<HTMLDivElement>(null);
  const { width } = useSize(box, { width: 900, height: HEIGHT_PX });
  const tiles = useMemo(() => tilesOf(nodes, zoomed, width, HEIGHT_PX), [nodes, zoomed, width]);
  const click = (node: OpNode): void => {
    if (node.kind === 'op') onChoose(node);
    else if (node.children.length && node.row !== zoomed) onZoom(node.row);
  };
  return (
    <>
      <ZoomPath nodes={nodes} zoomed={zoomed} onZoom={onZoom} />
      <div
        class="op-treemap"
        ref={box}
        role="group"
        aria-label="Treemap"
        style={{ height: `${HEIGHT_PX}px` }}
      >
        {tiles.map((tile) => (
          <TileBox
            key={tile.node.row}
            tile={tile}
            coloring={coloring}
            isChosen={chosen(tile.node)}
            onClick={() => click(tile.node)}
          />
        ))}
      </div>
    </>
  );
}
