/** The op profile's nodes as a tree: what is open, found and sorted becomes rows; the same tree becomes the boxes of a flame. Pure. */
import { numberOf, rowsOf } from '../../api/table';
import type { Table } from '../../api/types';
import { matches, wordsOf } from '../../base/search';

export interface OpNode {
  row: number;
  name: string;
  kind: string;
  parent: number;
  depth: number;
  children: OpNode[];
  /** Before those beyond the server's limit were left out. */
  nChildren: number;
  timePs: number;
  share: number;
  occurrences: number;
  avgPs: number | null;
  flops: number | null;
  flopRate: number | null;
  flopsUsed: number | null;
  hbmRate: number | null;
  hbmUsed: number | null;
  onChipRead: number | null;
  onChipWrite: number | null;
  program: string;
  provenance: string;
}

/** All nodes by row; the first is the root. */
export function nodesOf(table: Table | undefined): OpNode[] {
  const nodes: OpNode[] = [];
  for (const [row, cells] of rowsOf(table).entries()) {
    const number = (name: string): number | null => numberOf(cells[name]);
    const text = (name: string): string => String(cells[name] ?? '');
    const parent = nodes[number('parent') ?? -1];
    const node: OpNode = {
      ...{ row, name: text('name'), kind: text('kind'), parent: parent?.row ?? -1, depth: parent ? parent.depth + 1 : 0, children: [], nChildren: number('n_children') ?? 0 },
      ...{ timePs: number('self_time_ps') ?? 0, share: number('time_fraction') ?? 0, occurrences: number('n_occurrences') ?? 0, avgPs: number('avg_time_ps') },
      ...{ flops: number('flops'), flopRate: number('flop_rate_flops_per_s'), flopsUsed: number('flops_fraction'), hbmRate: number('hbm_bytes_per_s') },
      ...{ hbmUsed: number('hbm_fraction'), onChipRead: number('on_chip_read_fraction'), onChipWrite: number('on_chip_write_fraction') },
      ...{ program: text('program'), provenance: text('provenance') },
    };
    parent?.children.push(node);
    nodes.push(node);
  }
  return nodes;
}

export const SORTS = {
  name: (node: OpNode) => node.name,
  time: (node: OpNode) => node.timePs,
  flops: (node: OpNode) => node.flopsUsed ?? node.flopRate ?? -1,
  hbm: (node: OpNode) => node.hbmUsed ?? node.hbmRate ?? -1,
  on_chip: (node: OpNode) => Math.max(node.onChipRead ?? -1, node.onChipWrite ?? -1),
  occurrences: (node: OpNode) => node.occurrences,
  avg: (node: OpNode) => node.avgPs ?? -1,
} as const;
export type SortName = keyof typeof SORTS;

export interface TreeView {
  open: ReadonlySet<number>;
  query: string;
  sort: SortName;
  ascending: boolean;
  top: number;
}

export interface TreeRow {
  node: OpNode;
  isOpen: boolean;
  /** Children that are not shown, below the last shown one of this node: how many and their time. */
  rest?: { count: number; timePs: number };
}

function sorted(children: readonly OpNode[], { sort, ascending }: TreeView): OpNode[] {
  const key = SORTS[sort];
  const sign = ascending ? 1 : -1;
  return [...children].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    return sign * (typeof x === 'string' ? x.localeCompare(String(y), 'en', { numeric: true }) : x - Number(y)) || a.row - b.row;
  });
}

/** Nodes that the search finds, with all above them; null: there is no search. */
function found(nodes: readonly OpNode[], query: string): Set<number> | null {
  const words = wordsOf(query);
  if (!words.length) return null;
  const kept = new Set<number>();
  for (const node of nodes) {
    if (!matches(`${node.name} ${node.provenance}`, words)) continue;
    for (let at: OpNode | undefined = node; at && !kept.has(at.row); at = nodes[at.parent]) kept.add(at.row);
  }
  return kept;
}

/** The rows on screen. While there is a search, what it finds is open. */
export function rowsOfTree(nodes: readonly OpNode[], view: TreeView): TreeRow[] {
  const kept = found(nodes, view.query);
  const rows: TreeRow[] = [];
  const walk = (parent: OpNode): void => {
    const candidates = kept ? parent.children.filter((node) => kept.has(node.row)) : parent.children;
    const longest = new Set([...candidates].sort((a, b) => b.timePs - a.timePs).slice(0, kept ? candidates.length : view.top).map((node) => node.row));
    for (const node of sorted(candidates.filter(({ row }) => longest.has(row)), view)) {
      const isOpen = kept ? node.children.some((child) => kept.has(child.row)) : view.open.has(node.row);
      rows.push({ node, isOpen });
      if (isOpen) walk(node);
    }
    const shownPs = candidates.reduce((sum, node) => sum + (longest.has(node.row) ? node.timePs : 0), 0);
    const count = parent.nChildren - longest.size;
    const last = rows.at(-1);
    if (!kept && count > 0 && last) rows.push({ node: parent, isOpen: false, rest: { count, timePs: Math.max(0, parent.timePs - shownPs) } });
  };
  const root = nodes[0];
  if (root) walk(root);
  return rows;
}

/** What is open at first: the way to where most time goes, down to its operations. */
export function openAtFirst(nodes: readonly OpNode[]): Set<number> {
  const open = new Set<number>();
  const longest = (children: readonly OpNode[]): OpNode | undefined => children.filter(({ kind }) => kind !== 'idle').sort((a, b) => b.timePs - a.timePs)[0];
  for (let at = longest(nodes[0]?.children ?? []); at && at.kind !== 'op' && at.kind !== 'duplicates'; at = longest(at.children)) open.add(at.row);
  return open;
}

export function parseOpen(text: string | undefined, initial: ReadonlySet<number>): ReadonlySet<number> {
  if (text === undefined) return initial;
  return new Set(text.split('.').map(Number).filter((row) => Number.isInteger(row) && row > 0));
}

export interface Box {
  node: OpNode;
  /** Shares of the width. */
  left: number;
  width: number;
  level: number;
}

const LEAST_WIDTH = 0.0015;

/** The boxes of a flame below a node: a level below the other, as wide as their time; what is too narrow to see is left out. */
export function boxesOf(nodes: readonly OpNode[], zoomed: number): Box[] {
  const top = nodes[zoomed] ?? nodes[0];
  if (!top) return [];
  const boxes: Box[] = [];
  const place = (node: OpNode, left: number, width: number, level: number): void => {
    if (width < LEAST_WIDTH) return;
    boxes.push({ node, left, width, level });
    let at = left;
    for (const child of node.children) {
      const share = node.timePs > 0 ? (child.timePs / node.timePs) * width : 0;
      place(child, at, share, level + 1);
      at += share;
    }
  };
  place(top, 0, 1, 0);
  return boxes;
}

export const BANDS = [
  { name: 'low', title: 'below 25 %', token: '--bad', from: 0 },
  { name: 'middle', title: '25–60 %', token: '--warn', from: 0.25 },
  { name: 'high', title: 'above 60 %', token: '--good', from: 0.6 },
] as const;

/** The colour of a utilization. */
export function bandToken(used: number | null): string {
  if (used === null) return '--c-idle';
  return [...BANDS].reverse().find((band) => used >= band.from)?.token ?? '--bad';
}
