/** The drawing's tables as boxes, operations and edges; how a click on one of them changes the link. Pure. */
import { readTable } from '../../api/declared';
import { TPU_COMPATIBILITY } from '../../api/tables/tpu_compatibility';
import type { Payload } from '../../api/types';

export const { tables: TABLES, scalars: SCALARS } = TPU_COMPATIBILITY.drawing;

export interface Item {
  id: number;
  kind: 'scope' | 'operation' | 'rest';
  name: string;
  op: string;
  /** The open scope that contains it, -1 at the top. */
  frame: number;
  /** Row in the table of scopes. */
  scope: number;
  isOpen: boolean;
  nValid: number;
  nInvalid: number;
  nNotChecked: number;
  reason: string;
  fix: string;
  /** The operation's number in the graph; -1 for other items. */
  node: number;
}

export interface Edge {
  from: number;
  to: number;
  n: number;
  isCall: boolean;
}

export interface Drawn {
  items: Item[];
  edges: Edge[];
}

export function drawnOf(payload: Payload): Drawn {
  const items = readTable(payload, TABLES.items)
    .all()
    .map((row, id): Item => ({
      id,
      kind: row.kind as Item['kind'],
      name: row.name,
      op: row.op,
      frame: row.frame ?? -1,
      scope: row.scope ?? 0,
      isOpen: row.is_open,
      nValid: row.n_valid ?? 0,
      nInvalid: row.n_invalid ?? 0,
      nNotChecked: row.n_not_checked ?? 0,
      reason: row.reason,
      fix: row.fix,
      node: row.node ?? -1,
    }));
  const edges = readTable(payload, TABLES.edges)
    .all()
    .map(({ from, to, n, is_call }) => ({ from: from ?? 0, to: to ?? 0, n: n ?? 1, isCall: is_call }));
  return { items, edges };
}

export type Level = 'good' | 'bad' | 'none';

export function levelOf({ nValid, nInvalid }: Item): Level {
  return nInvalid ? 'bad' : nValid ? 'good' : 'none';
}

const SIGNS: Readonly<Record<Level, string>> = { good: '✓', bad: '✗', none: '·' };

/** The line below the name, so that color is not the only cue. */
export function noteOf(item: Item): string {
  const sign = SIGNS[levelOf(item)];
  if (item.kind === 'operation') return `${sign} ${item.op}`;
  const all = item.nValid + item.nInvalid + item.nNotChecked;
  return `${sign} ${item.nInvalid ? `${item.nInvalid.toLocaleString('en-US')} of ` : ''}${all.toLocaleString('en-US')} ${all === 1 ? 'operation' : 'operations'}`;
}

/** The last part of a scoped name, which distinguishes it from others. */
export function shortName(item: Item, most: number): string {
  const last = item.kind === 'operation' ? item.name.slice(item.name.lastIndexOf('/') + 1) : item.name;
  return last.length > most
    ? `${last.slice(0, Math.ceil(most / 2) - 1)}…${last.slice(last.length - Math.floor(most / 2))}`
    : last;
}

/** The nesting depth of open scopes inside each one, itself included. Frames precede their contents. */
export function levelsOf(items: readonly Item[]): Map<number, number> {
  const levels = new Map<number, number>();
  for (const { id, frame, isOpen } of [...items].reverse()) {
    if (!isOpen) continue;
    const ownLevels = levels.get(id) ?? 1;
    levels.set(id, ownLevels);
    if (frame >= 0) levels.set(frame, Math.max(levels.get(frame) ?? 1, ownLevels + 1));
  }
  return levels;
}

/** Everything in an open scope, at any depth. */
export function isWithin(items: readonly Item[], id: number, frame: number): boolean {
  for (let ancestor = items[id]?.frame ?? -1; ancestor >= 0; ancestor = items[ancestor]?.frame ?? -1)
    if (ancestor === frame) return true;
  return false;
}

/** The next item an arrow key leads to: the nearest one in that direction. */
export function nextItem(
  centers: ReadonlyMap<number, { x: number; y: number }>,
  from: number,
  key: string,
): number | null {
  const start = centers.get(from);
  const way = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[key];
  if (!start || !way) return null;
  const [dx = 0, dy = 0] = way;
  let best: { id: number; cost: number } | null = null;
  for (const [id, { x, y }] of centers) {
    const along = (x - start.x) * dx + (y - start.y) * dy;
    const across = Math.abs((x - start.x) * dy) + Math.abs((y - start.y) * dx);
    if (id === from || along < 1 || across > 4 * along) continue;
    const cost = along + 2 * across;
    if (!best || cost < best.cost) best = { id, cost };
  }
  return best?.id ?? null;
}
