/** The parts of the drawing: boxes of scopes, frames of open ones, operations, edges. */
import type { VNode } from 'preact';
import { levelOf, levelsOf, noteOf, shortName, type Drawn, type Item } from './drawn';
import { MOST_NAME, type Box, type Placed } from './placed';

const FRAME_TITLE_PX = 12;

/** Shares of valid, incompatible and unchecked operations as a bar. */
function Shares({ item, left, top, width }: { item: Item; left: number; top: number; width: number }): VNode {
  const all = item.nValid + item.nInvalid + item.nNotChecked || 1;
  let barX = left;
  const parts = [
    { name: 'good', n: item.nValid },
    { name: 'bad', n: item.nInvalid },
    { name: 'none', n: item.nNotChecked },
  ].filter(({ n }) => n > 0);
  return (
    <>
      {parts.map(({ name, n }) => {
        const x = barX;
        const length = Math.max(2, (n / all) * width);
        barX += length;
        return (
          <rect
            key={name}
            class={`share ${name}`}
            x={x}
            y={top}
            width={Math.min(length, left + width - x)}
            height={5}
          />
        );
      })}
    </>
  );
}

interface ShapeProps {
  item: Item;
  /** The nesting depth of open scopes inside an open scope: each needs a line for its title. */
  levels: number;
  box: Box;
  isChosen: boolean;
  isTabStop: boolean;
  act: (item: Item) => void;
}

function titleOf(item: Item): string {
  const counts = `${item.nInvalid.toLocaleString('en-US')} incompatible, ${item.nValid.toLocaleString('en-US')} valid, ${item.nNotChecked.toLocaleString('en-US')} not checked`;
  if (item.kind === 'operation') return `${item.name}\n${item.op}: ${item.reason}`;
  return item.kind === 'scope'
    ? `${item.name}\n${counts}\nClick to ${item.isOpen ? 'close' : 'open'}`
    : `${item.name}, drawn together\n${counts}`;
}

function Shape({ item, levels, box, isChosen, isTabStop, act }: ShapeProps): VNode {
  const [left, top] = [box.x - box.width / 2, box.y - box.height / 2];
  const level = levelOf(item);
  const common = {
    'data-item': item.id,
    tabindex: isTabStop ? 0 : -1, // in SVG names of attributes keep their case
    role: 'button' as const,
    'aria-label': `${item.name}, ${noteOf(item)}`,
    onClick: () => act(item),
    ...(item.kind === 'scope' ? { 'aria-expanded': item.isOpen } : { 'aria-pressed': isChosen }),
  };
  if (item.isOpen) {
    return (
      <g class={`td-frame ${level}${isChosen ? ' chosen' : ''}`} {...common}>
        <title>{titleOf(item)}</title>
        <rect
          class="box"
          x={left}
          y={top - FRAME_TITLE_PX * levels}
          width={box.width}
          height={box.height + FRAME_TITLE_PX * levels}
          rx={8}
        />
        <text x={left + 8} y={top - FRAME_TITLE_PX * (levels - 1) + 2}>
          {`▾ ${shortName(item, Math.max(6, Math.floor((box.width - 30) / 7)))}`}
        </text>
      </g>
    );
  }
  return (
    <g class={`td-item ${item.kind} ${level}${isChosen ? ' chosen' : ''}`} {...common}>
      <title>{titleOf(item)}</title>
      <rect
        class="box"
        x={left}
        y={top}
        width={box.width}
        height={box.height}
        rx={item.kind === 'operation' ? box.height / 2 : 6}
      />
      <text
        class="name"
        x={item.kind === 'operation' ? box.x : left + 10}
        y={top + 16}
        text-anchor={item.kind === 'operation' ? 'middle' : 'start'}
      >
        {`${item.kind === 'scope' ? '▸ ' : ''}${shortName(item, MOST_NAME)}`}
      </text>
      <text
        class="note"
        x={item.kind === 'operation' ? box.x : left + 10}
        y={top + 30}
        text-anchor={item.kind === 'operation' ? 'middle' : 'start'}
      >
        {noteOf(item)}
      </text>
      {item.kind === 'scope' && (
        <Shares item={item} left={left + 6} top={top + box.height - 8} width={box.width - 12} />
      )}
    </g>
  );
}

export function Arrow(): VNode {
  return (
    <defs class="td-arrow">
      <marker
        id="td-arrow"
        viewBox="0 0 8 8"
        refX="7"
        refY="4"
        markerUnits="userSpaceOnUse"
        markerWidth="8"
        markerHeight="8"
        orient="auto-start-reverse"
      >
        <path d="M0 0L8 4L0 8z" />
      </marker>
    </defs>
  );
}

export interface ShapesProps {
  drawn: Drawn;
  placed: Placed;
  chosen: number | null;
  /** Row of the scope selected in the tree. */
  scope: number | null;
  focus: number;
  act: (item: Item) => void;
}

function Edges({ drawn, placed, chosen }: ShapesProps): VNode {
  return (
    <>
      {placed.links.map(({ edge, path }, i) => {
        const isMarked = edge.from === chosen || edge.to === chosen;
        const title = `${drawn.items[edge.from]?.name} → ${drawn.items[edge.to]?.name}${edge.isCall ? ' (calls)' : ''}${edge.n > 1 ? `: ${edge.n.toLocaleString('en-US')} edges` : ''}`;
        return (
          <path
            key={i}
            class={`td-edge${edge.isCall ? ' call' : ''}${isMarked ? ' marked' : ''}`}
            d={path}
            marker-end="url(#td-arrow)"
            style={{ strokeWidth: Math.min(4, 1 + Math.log2(edge.n) / 2) }}
          >
            <title>{title}</title>
          </path>
        );
      })}
    </>
  );
}

/** Frames below edges below boxes. */
export function Shapes(props: ShapesProps): VNode {
  const { drawn, placed, chosen, scope, focus, act } = props;
  const levels = levelsOf(drawn.items);
  const of = (isOpen: boolean): (VNode | null)[] =>
    drawn.items.map((item) => {
      const box = placed.at.get(item.id);
      return item.isOpen === isOpen && box ? (
        <Shape
          key={item.id}
          item={item}
          levels={levels.get(item.id) ?? 1}
          box={box}
          isChosen={item.kind === 'scope' ? item.scope === scope : item.id === chosen}
          isTabStop={item.id === focus}
          act={act}
        />
      ) : null;
    });
  return (
    <>
      {of(true)}
      <Edges {...props} />
      {of(false)}
    </>
  );
}
