/**
 * One thread's boxes, below an axis of time. The boxes are a tree for the keyboard and for screen readers: arrows
 * move, Enter zooms, Escape zooms out, Space chooses.
 */
import type { JSX, VNode } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { format, formatIn } from '../../base/units';
import { useWidth } from '../../widgets/size';
import { boxesOf, neighbor, signed, ticksOf, tipOf, type Box, type Coloring, type FlameNode } from './model';
import { paintOf } from './paint';

/** Ticks end before the right edge, where their text would be cut. */
const LAST_TICK = 0.96;
const LEVEL_PX = 26;
const AXIS_PX = 20;
const TICK_PX = 110;
/** Boxes that are narrower than this many pixels are not drawn. */
const LEAST_PX = 1;
const LABEL_FROM_PX = 24;
/** About the width of a character of the name and of the note after it. */
const NAME_PX = 6.9;
const NOTE_PX = 6.2;
const PADDING_PX = 20;

export interface FlameProps {
  nodes: readonly FlameNode[];
  thread: number;
  title: string;
  spanPs: number;
  stepPs: number;
  isPerStep: boolean;
  isCompared: boolean;
  coloring: Coloring;
  zoomed: number;
  /** The event name of the chosen function. */
  chosen: string;
  /** The rows that match the search; null: nothing is searched. */
  found: ReadonlySet<number> | null;
  onZoom: (row: number) => void;
  onChoose: (node: FlameNode) => void;
}

const ARROWS = ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home', 'End'];

/** Times in the unit of the first one. */
function Axis({ spanPs, widthPx, height }: { spanPs: number; widthPx: number; height: number }): VNode {
  const ticks = ticksOf(spanPs * LAST_TICK, widthPx / TICK_PX);
  return (
    <div class="fg-axis" aria-hidden="true" style={{ height: `${height}px` }}>
      {ticks.map((tick) => (
        <span key={tick} style={{ left: `${(100 * tick) / spanPs}%` }}>
          {tick ? formatIn(tick, ticks[1] ?? tick, 'ps') : '0'}
        </span>
      ))}
    </div>
  );
}

function labelOf({ node, width }: Box, widthPx: number, isCompared: boolean): VNode | null {
  if (width * widthPx < LABEL_FROM_PX) return null;
  const time = isCompared ? signed(node.totalPs - (node.otherTotalPs ?? 0)) : format(node.totalPs, 'ps');
  const room = width * widthPx - PADDING_PX - node.name.length * NAME_PX;
  const whole = node.place && !isCompared ? `${node.place} · ${time}` : time;
  const note = [whole, time].find((text) => text.length * NOTE_PX <= room);
  return (
    <>
      <b>{node.name}</b>
      {note && <small>{note}</small>}
    </>
  );
}

export function Flame(props: FlameProps): VNode {
  const { nodes, thread, title, spanPs, stepPs, isPerStep, isCompared, coloring, zoomed, chosen } = props;
  const box = useRef<HTMLDivElement>(null);
  const widthPx = useWidth(box);
  const boxes = useMemo(
    () => (widthPx ? boxesOf(nodes, thread, { spanPs, zoomed, least: LEAST_PX / widthPx }) : []),
    [nodes, thread, spanPs, zoomed, widthPx],
  );
  const drawn = useMemo(() => new Set(boxes.map(({ node }) => node.row)), [boxes]);
  const [active, setActive] = useState(-1);
  const focusable = drawn.has(active) ? active : (boxes[0]?.node.row ?? -1);
  /** The row that gets the focus once it is drawn. */
  const awaited = useRef(-1);
  useEffect(() => {
    const next = box.current?.querySelector<HTMLElement>(`[data-row="${awaited.current}"]`);
    if (!next) return;
    awaited.current = -1;
    next.focus();
  }, [active, boxes]);
  const move = (row: number): void => {
    awaited.current = row;
    setActive(row);
  };
  const isHere = nodes[zoomed]?.thread === thread;
  const onKey = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>): void => {
    // Keys that come faster than the picture start at the row that is about to get the focus.
    const row =
      awaited.current >= 0 ? awaited.current : Number((event.target as HTMLElement).dataset['row'] ?? -1);
    const node = nodes[row];
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    if (ARROWS.includes(event.key)) {
      move(neighbor(nodes, drawn, row, event.key));
    } else if (event.key === 'Enter') {
      move(row);
      props.onZoom(row === zoomed ? node.parent : row);
    } else if (event.key === 'Escape' && isHere) {
      move(row);
      props.onZoom(-1);
    } else if (event.key === ' ') props.onChoose(node);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const levels = Math.max(1, ...boxes.map(({ level }) => level + 1));
  const height = AXIS_PX + levels * LEVEL_PX;
  const shownSpan = isHere && zoomed >= 0 ? (nodes[zoomed]?.totalPs ?? spanPs) : spanPs;
  return (
    <div class="fg-flame" style={{ height: `${height}px` }}>
      {!isCompared && <Axis spanPs={shownSpan} widthPx={widthPx} height={height} />}
      <div
        ref={box}
        class="fg-boxes"
        role="tree"
        aria-label={`Calls of ${title}`}
        style={{ top: `${AXIS_PX}px` }}
        onKeyDown={onKey}
      >
        {boxes.map((one) => {
          const { node, left, width, level } = one;
          const paint = paintOf(node, coloring, isCompared);
          const dim = props.found !== null && !props.found.has(node.row) ? ' dim' : '';
          const isChosen = node.key !== '' && node.key === chosen;
          const tip = tipOf(node, stepPs, isPerStep);
          return (
            <div
              key={node.row}
              role="treeitem"
              tabIndex={node.row === focusable ? 0 : -1}
              data-row={node.row}
              data-tip={tip}
              aria-level={level + 1}
              aria-selected={isChosen}
              aria-expanded={node.children.length ? true : undefined}
              aria-label={tip.replace(/\n/g, ', ')}
              class={`fg-box fg-${paint.name}${dim}`}
              style={{
                ...paint.style,
                left: `${100 * left}%`,
                width: `${100 * width}%`,
                top: `${level * LEVEL_PX}px`,
              }}
              onClick={() => {
                setActive(node.row);
                props.onChoose(node);
              }}
              onDblClick={() => props.onZoom(node.row)}
              onFocus={() => setActive(node.row)}
            >
              {labelOf(one, widthPx, isCompared)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
