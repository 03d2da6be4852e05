/** The payload's rows become trees, and a tree becomes boxes on a screen. Pure. */
import { readTable, type RowsOf } from '../../api/declared';
import { FLAME_GRAPH } from '../../api/tables/flame_graph';
import type { Payload } from '../../api/types';
import { matches } from '../../base/search';
import { format, plural } from '../../base/units';

export const { tables: TABLES, scalars: SCALARS } = FLAME_GRAPH.page;
export const FUNCTION = FLAME_GRAPH.function;

export interface FlameNode {
  row: number;
  thread: number;
  parent: number;
  level: number;
  children: number[];
  name: string;
  file: string;
  /** `data.py:71`; empty where it is unknown. */
  place: string;
  package: string;
  family: string;
  selfPs: number;
  totalPs: number;
  calls: number;
  /** Of the steps to compare with; null: nothing is compared. */
  otherSelfPs: number | null;
  otherTotalPs: number | null;
  nSmaller: number;
  /** Since the step's start; null: merged. */
  startPs: number | null;
  key: string;
  /** forward, backward or optimizer; empty: unknown. */
  phase: string;
  /** null: unknown. */
  flops: number | null;
  /** Of modules, where allocations were recorded. */
  allocatedBytes: number | null;
  netBytes: number | null;
  peakBytes: number | null;
}

export interface Thread {
  row: number;
  name: string;
  section: string;
  nThreads: number;
  busyPs: number;
  busyFraction: number | null;
  isShown: boolean;
  tracks: string;
}

export function nodesOf(payload: Payload): FlameNode[] {
  const rows = readTable(payload, TABLES.nodes);
  const [thread, parent, self, total] = [
    rows.number('thread'),
    rows.number('parent'),
    rows.number('self_ps'),
    rows.number('total_ps'),
  ];
  const [calls, smaller, line, start] = [
    rows.number('calls'),
    rows.number('n_smaller'),
    rows.number('line'),
    rows.number('start_ps'),
  ];
  const [otherSelf, otherTotal] = [rows.number('other_self_ps'), rows.number('other_total_ps')];
  const [name, file, family, key, pack] = [
    rows.text('name'),
    rows.text('file'),
    rows.text('family'),
    rows.text('key'),
    rows.text('package'),
  ];
  const [phase, flops] = [rows.text('phase'), rows.number('flops')];
  const [allocated, net, peak] = [
    rows.number('allocated_bytes'),
    rows.number('net_bytes'),
    rows.number('peak_bytes'),
  ];
  const hasMemory = rows.has('allocated_bytes');
  const nodes: FlameNode[] = [];
  for (let row = 0; row < rows.length; row++) {
    const above = parent(row) ?? -1;
    const caller = above < row ? nodes[above] : undefined;
    const nSmaller = smaller(row) ?? 0;
    nodes.push({
      row,
      thread: thread(row) ?? 0,
      parent: caller ? above : -1,
      level: caller ? caller.level + 1 : 0,
      children: [],
      name: nSmaller ? `(${plural(nSmaller, 'smaller', 'smaller')})` : name(row) || '(no name)',
      file: file(row),
      place: placeOf(file(row), line(row)),
      package: pack(row),
      family: family(row),
      selfPs: self(row) ?? 0,
      totalPs: total(row) ?? 0,
      calls: calls(row) ?? 0,
      otherSelfPs: rows.has('other_self_ps') ? (otherSelf(row) ?? 0) : null,
      otherTotalPs: rows.has('other_total_ps') ? (otherTotal(row) ?? 0) : null,
      nSmaller,
      startPs: rows.has('start_ps') ? (start(row) ?? 0) : null,
      key: key(row),
      phase: rows.has('phase') ? phase(row) : '',
      flops: rows.has('flops') ? flops(row) : null,
      allocatedBytes: hasMemory ? allocated(row) : null,
      netBytes: hasMemory ? net(row) : null,
      peakBytes: hasMemory ? peak(row) : null,
    });
    caller?.children.push(row);
  }
  return nodes;
}

export function placeOf(file: string, line: number | null): string {
  return file ? `${file}${line === null ? '' : `:${line}`}` : '';
}

export function threadsOf(payload: Payload): Thread[] {
  const rows: RowsOf<typeof TABLES.threads> = readTable(payload, TABLES.threads);
  return rows.all().map((row, i) => ({
    row: i,
    name: row.name,
    section: row.section,
    nThreads: row.n_threads ?? 1,
    busyPs: row.busy_ps ?? 0,
    busyFraction: row.busy_fraction,
    isShown: row.is_shown,
    tracks: row.tracks,
  }));
}

/** The time that a box is as wide as: of both sets of steps together where two are compared. */
export function widthPs(node: FlameNode): number {
  return node.totalPs + (node.otherTotalPs ?? 0);
}

export interface Box {
  node: FlameNode;
  /** Of the width of the picture, 0–1. */
  left: number;
  width: number;
  level: number;
}

/**
 * The boxes of one thread. `spanPs`: the time that the whole width stands for; `zoomed`: the row that fills the
 * width, with its callers as wide as it; -1: none. Boxes narrower than `least` (of the width) are left out.
 */
export function boxesOf(
  nodes: readonly FlameNode[],
  thread: number,
  { spanPs, zoomed, least }: { spanPs: number; zoomed: number; least: number },
): Box[] {
  const top = nodes[zoomed];
  const boxes: Box[] = [];
  if (top && top.thread === thread) {
    for (let above = nodes[top.parent]; above; above = nodes[above.parent])
      boxes.push({ node: above, left: 0, width: 1, level: above.level });
    boxes.reverse();
    place(nodes, top, { left: 0, width: 1, least, perPs: 1 / Math.max(widthPs(top), 1) }, boxes);
    return boxes;
  }
  const perPs = 1 / Math.max(spanPs, 1);
  let left = 0;
  for (const root of nodes) {
    if (root.parent >= 0 || root.thread !== thread) continue;
    const width = widthPs(root) * perPs;
    place(
      nodes,
      root,
      { left: root.startPs === null ? left : root.startPs * perPs, width, least, perPs },
      boxes,
    );
    left += width;
  }
  return boxes;
}

interface Area {
  left: number;
  width: number;
  least: number;
  perPs: number;
}

/** A node, and below it what it calls; without recursion, as stacks can be deep. */
function place(nodes: readonly FlameNode[], root: FlameNode, area: Area, boxes: Box[]): void {
  const { least, perPs } = area;
  const waiting = [{ node: root, left: area.left, width: area.width }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { node, left, width } = next;
    if (width < least) continue;
    boxes.push({ node, left, width, level: node.level });
    let at = left;
    for (const row of node.children) {
      const child = nodes[row] as FlameNode;
      const start =
        child.startPs === null || node.startPs === null ? at : left + (child.startPs - node.startPs) * perPs;
      waiting.push({ node: child, left: start, width: widthPs(child) * perPs });
      at += widthPs(child) * perPs;
    }
  }
}

export const COLORINGS = ['family', 'file', 'package'] as const;
export type Coloring = (typeof COLORINGS)[number];

export const FAMILIES: readonly { name: string; title: string; meaning: string }[] = [
  {
    name: 'yours',
    title: 'Your code',
    meaning: 'Functions in files of no known library, and your annotations',
  },
  { name: 'library', title: 'Library', meaning: "Python's own, frameworks and installed packages" },
  { name: 'runtime', title: 'Runtime', meaning: 'Calls of the framework’s runtime' },
  { name: 'operation', title: 'Operation', meaning: 'Operations and kernels, on devices or on the host' },
  { name: 'waiting', title: 'Waiting', meaning: 'Sleeping, locks, and waits for devices or data' },
];

export const PHASES: readonly { name: string; title: string; meaning: string }[] = [
  { name: 'forward', title: 'Forward', meaning: 'The forward pass' },
  { name: 'backward', title: 'Backward', meaning: 'The backward pass: gradients' },
  { name: 'optimizer', title: 'Optimizer', meaning: 'The update of the parameters' },
];

export function familyTitle(family: string): string {
  return FAMILIES.find(({ name }) => name === family)?.title ?? '';
}

/** A stable number of a text, for its color. */
export function hashOf(text: string): number {
  let hash = 7;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) % 1_000_003;
  return hash;
}

/** The word that gives a node its color, where it is not its family; empty: none. */
export function groupOf(node: FlameNode, coloring: Coloring): string {
  return coloring === 'package' ? node.package || node.file : coloring === 'file' ? node.file : '';
}

/** The groups with most self time, for the legend. */
export function largestGroups(nodes: readonly FlameNode[], coloring: Coloring, n: number): string[] {
  const time = new Map<string, number>();
  for (const node of nodes) {
    const group = groupOf(node, coloring);
    if (group) time.set(group, (time.get(group) ?? 0) + node.selfPs);
  }
  return [...time]
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, n)
    .map(([group]) => group);
}

/**
 * The rows that match, and the time of the outermost ones, per step: a match inside another one does not count
 * twice.
 */
export function found(
  nodes: readonly FlameNode[],
  words: readonly string[],
): { rows: ReadonlySet<number>; totalPs: number } | null {
  if (!words.length) return null;
  const rows = new Set<number>();
  const inside = new Set<number>();
  let totalPs = 0;
  for (const node of nodes) {
    const isMatch = !node.nSmaller && matches(`${node.name} ${node.place} ${node.package}`, words);
    if (isMatch) rows.add(node.row);
    if (isMatch && !inside.has(node.parent)) totalPs += node.totalPs;
    if (isMatch || inside.has(node.parent)) inside.add(node.row);
  }
  return { rows, totalPs };
}

/** How much more time A takes than B, −1 to 1: of the larger one. */
export function changeOf(node: FlameNode): number {
  const other = node.otherTotalPs ?? node.totalPs;
  return (node.totalPs - other) / Math.max(node.totalPs, other, 1);
}

export function signed(ps: number): string {
  return ps === 0 ? 'no change' : `${ps > 0 ? '+' : '−'}${format(Math.abs(ps), 'ps')}`;
}

/** What is left of allocations after those that are freed. */
function netOf(bytes: number): string {
  if (bytes < 0) return `frees ${format(-bytes, 'bytes')} more than that`;
  return bytes > 0 ? `keeps ${format(bytes, 'bytes')}` : 'keeps nothing';
}

/** All numbers of a box, for its tooltip and for screen readers. `stepPs`: what shares are of. */
export function tipOf(node: FlameNode, stepPs: number, isPerStep: boolean): string {
  const per = isPerStep && node.startPs === null ? ' per step' : '';
  const share = (ps: number): string =>
    `${format(ps, 'ps')}${per} (${format(ps / Math.max(stepPs, 1), 'fraction')})`;
  const lines = [
    node.place ? `${node.name}  ${node.place}` : node.name,
    familyTitle(node.family),
    `Total ${share(node.totalPs)}`,
    `Self ${share(node.selfPs)}`,
  ];
  if (node.startPs === null) lines.push(`Calls ${format(node.calls, 'count')}${per}`);
  else lines.push(`Starts at ${format(node.startPs, 'ps')}`);
  if (node.phase) lines.push(PHASES.find(({ name }) => name === node.phase)?.title ?? '');
  if (node.flops) lines.push(`FLOPs ${format(node.flops, 'count')}${per}`);
  if (node.allocatedBytes !== null)
    lines.push(`Allocates ${format(node.allocatedBytes, 'bytes')}${per}, ${netOf(node.netBytes ?? 0)}`);
  if (node.peakBytes !== null)
    lines.push(`Needs up to ${format(node.peakBytes, 'bytes')} more than at its start`);
  if (node.otherTotalPs !== null) {
    lines.push(`Compared: total ${signed(node.totalPs - node.otherTotalPs)}`);
    lines.push(`Compared: self ${signed(node.selfPs - (node.otherSelfPs ?? 0))}`);
  }
  return lines.filter(Boolean).join('\n');
}

/** The row that an arrow leads to, among those drawn; the same row where there is none. */
export function neighbor(
  nodes: readonly FlameNode[],
  drawn: ReadonlySet<number>,
  row: number,
  key: string,
): number {
  const node = nodes[row];
  if (!node) return row;
  if (key === 'ArrowUp') return drawn.has(node.parent) ? node.parent : row;
  if (key === 'ArrowDown') return node.children.find((child) => drawn.has(child)) ?? row;
  const siblings = (nodes[node.parent]?.children ?? rootsOf(nodes, node.thread)).filter((one) =>
    drawn.has(one),
  );
  if (key === 'Home') return siblings[0] ?? row;
  if (key === 'End') return siblings.at(-1) ?? row;
  return siblings[siblings.indexOf(row) + (key === 'ArrowRight' ? 1 : -1)] ?? row;
}

function rootsOf(nodes: readonly FlameNode[], thread: number): number[] {
  return nodes.filter((node) => node.parent < 0 && node.thread === thread).map(({ row }) => row);
}

/** Round times for the axis, at most `most` of them, beginning with 0. */
export function ticksOf(spanPs: number, most: number): number[] {
  if (spanPs <= 0) return [0];
  const least = spanPs / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = ([1, 2, 5, 10].find((lead) => lead * power >= least) ?? 10) * power;
  return Array.from({ length: Math.floor(spanPs / step + 1e-9) + 1 }, (_, i) => i * step);
}
