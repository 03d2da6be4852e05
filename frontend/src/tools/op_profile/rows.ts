/** Which nodes are rows of the tree, and in which order: opened, matched, sorted, and cut. Pure. */
import { matches, orderKey, wordsOf } from '../../base/search';
import type { OpNode } from './model';

export const SORTS = {
  name: (node: OpNode) => orderKey(node.name),
  time: (node: OpNode) => node.timePs,
  wasted: (node: OpNode) => node.wastedPs ?? -1,
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
  /** Children are shown until they cover this share of their parent; null: as many as `top` says. */
  cover: number | null;
}

export interface TreeRow {
  node: OpNode;
  isOpen: boolean;
  /** The children that are not shown, below the last visible one of this node: their number and time. */
  rest?: { count: number; timePs: number };
}

function sorted(children: readonly OpNode[], { sort, ascending }: TreeView): OpNode[] {
  const key = SORTS[sort];
  const sign = ascending ? 1 : -1;
  const keyed = children.map((node) => ({ node, key: key(node) }));
  keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.node.row - b.node.row));
  return keyed.map(({ node }) => node);
}

/** Nodes that match the search, with all their ancestors; null: there is no search. */
function matchingRows(nodes: readonly OpNode[], query: string): Set<number> | null {
  const words = wordsOf(query);
  if (!words.length) return null;
  const rows = new Set<number>();
  for (const node of nodes) {
    if (!matches(`${node.name} ${node.provenance}`, words)) continue;
    for (
      let ancestor: OpNode | undefined = node;
      ancestor && !rows.has(ancestor.row);
      ancestor = nodes[ancestor.parent]
    )
      rows.add(ancestor.row);
  }
  return rows;
}

/** By what children are chosen: wasted time if the tree is sorted by it, else time. */
function weightOf({ sort }: TreeView): (node: OpNode) => number {
  return sort === 'wasted' ? (node) => node.wastedPs ?? 0 : (node) => node.timePs;
}

/** The rows of the children that are shown: the largest ones. */
function largest(parent: OpNode, candidates: readonly OpNode[], view: TreeView): Set<number> {
  const weight = weightOf(view);
  const ordered = [...candidates].sort((a, b) => weight(b) - weight(a));
  if (view.cover === null) return new Set(ordered.slice(0, view.top).map(({ row }) => row));
  const enough = view.cover * weight(parent);
  const rows = new Set<number>();
  let covered = 0;
  for (const node of ordered) {
    if (covered >= enough && rows.size) break;
    rows.add(node.row);
    covered += weight(node);
  }
  return rows;
}

/** The rows on screen. During a search, paths to matches are open. */
export function rowsOfTree(nodes: readonly OpNode[], view: TreeView): TreeRow[] {
  const matching = matchingRows(nodes, view.query);
  const rows: TreeRow[] = [];
  const walk = (parent: OpNode): void => {
    const candidates = matching ? parent.children.filter((node) => matching.has(node.row)) : parent.children;
    const shown = matching ? new Set(candidates.map(({ row }) => row)) : largest(parent, candidates, view);
    for (const node of sorted(
      candidates.filter(({ row }) => shown.has(row)),
      view,
    )) {
      const isOpen = matching
        ? node.children.some((child) => matching.has(child.row))
        : view.open.has(node.row);
      rows.push({ node, isOpen });
      if (isOpen) walk(node);
    }
    const shownPs = candidates.reduce((sum, node) => sum + (shown.has(node.row) ? node.timePs : 0), 0);
    const count = parent.nChildren - shown.size;
    const last = rows.at(-1);
    if (!matching && count > 0 && last)
      rows.push({
        node: parent,
        isOpen: false,
        rest: { count, timePs: Math.max(0, parent.timePs - shownPs) },
      });
  };
  const root = nodes[0];
  if (root) walk(root);
  return rows;
}

/** Open at first: the path along the most time, down to its operations. */
export function openAtFirst(nodes: readonly OpNode[]): Set<number> {
  const open = new Set<number>();
  const longest = (children: readonly OpNode[]): OpNode | undefined =>
    children.filter(({ kind }) => kind !== 'idle').sort((a, b) => b.timePs - a.timePs)[0];
  for (
    let current = longest(nodes[0]?.children ?? []);
    current && current.kind !== 'op' && current.kind !== 'duplicates';
    current = longest(current.children)
  )
    open.add(current.row);
  return open;
}

export function parseOpen(text: string | undefined, initial: ReadonlySet<number>): ReadonlySet<number> {
  if (text === undefined) return initial;
  return new Set(
    text
      .split('.')
      .map(Number)
      .filter((row) => Number.isInteger(row) && row > 0),
  );
}
