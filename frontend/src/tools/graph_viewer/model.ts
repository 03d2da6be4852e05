/** The graph viewer's payload as nodes, edges and lists. Pure. */
import { numberOf, rowsOf, type Cell } from '../../api/table';
import type { Payload, Table } from '../../api/types';
import { format } from '../../base/units';

export interface Node {
  id: number;
  name: string;
  opcode: string;
  opClass: string;
  kind: string;
  shape: string;
  /** The opened fusion that it is a part of; -1: none. */
  frame: number;
  isFrame: boolean;
  depth: number;
  timePs: number | null;
  /** Its time is not asked for yet. */
  awaitsTime: boolean;
  timeFraction: number | null;
  nOccurrences: number;
  nHiddenOperands: number;
  nHiddenUsers: number;
  calls: string[];
  expression: string;
  opName: string;
  opType: string;
  source: string;
  stack: string;
}

export interface Edge {
  from: number;
  to: number;
  operand: number;
  shape: string;
}

export interface Graph {
  nodes: Node[];
  edges: Edge[];
  center: number;
  nCut: number;
}

export interface Chosen {
  program: string;
  op: string;
  computation: string;
  callers: string[];
  entry: string;
}

function text(cell: Cell | undefined): string {
  return typeof cell === 'string' ? cell : '';
}

function words(cell: Cell | undefined): string[] {
  return text(cell).split(' ').filter(Boolean);
}

export function nodesOf(table: Table | undefined): Node[] {
  return rowsOf(table).map((row) => ({
    id: numberOf(row['node']) ?? -1,
    name: text(row['name']),
    opcode: text(row['opcode']),
    opClass: text(row['op_class']),
    kind: text(row['kind']),
    shape: text(row['shape']),
    frame: numberOf(row['frame']) ?? -1,
    isFrame: row['is_frame'] === true,
    depth: numberOf(row['depth']) ?? 0,
    timePs: numberOf(row['time_ps']),
    awaitsTime: row['time_ps'] === undefined,
    timeFraction: numberOf(row['time_fraction']),
    nOccurrences: numberOf(row['n_occurrences']) ?? 0,
    nHiddenOperands: numberOf(row['n_hidden_operands']) ?? 0,
    nHiddenUsers: numberOf(row['n_hidden_users']) ?? 0,
    calls: words(row['calls']),
    expression: text(row['expression']),
    opName: text(row['op_name']),
    opType: text(row['op_type']),
    source: text(row['source']),
    stack: text(row['stack']),
  }));
}

export function graphOf(payload: Payload): Graph {
  const nodes = nodesOf(payload.tables['nodes']);
  const known = new Set(nodes.filter(({ isFrame }) => !isFrame).map(({ id }) => id));
  const edges = rowsOf(payload.tables['edges'])
    .map((row) => ({
      from: numberOf(row['from']) ?? -1,
      to: numberOf(row['to']) ?? -1,
      operand: numberOf(row['operand']) ?? 0,
      shape: text(row['shape']),
    }))
    .filter(({ from, to }) => known.has(from) && known.has(to));
  const scalar = (name: string): number => numberOf(payload.scalars[name]?.value as Cell) ?? 0;
  return { nodes, edges, center: scalar('center'), nCut: scalar('n_cut') };
}

export function chosenOf(payload: Payload): Chosen {
  const row = rowsOf(payload.tables['chosen'])[0] ?? {};
  return {
    program: text(row['program']),
    op: text(row['op']),
    computation: text(row['computation']),
    callers: words(row['callers']),
    entry: text(row['entry']),
  };
}

export interface Program {
  title: string;
  label: string;
}

/** The programs that took most time first. */
export function programsOf(table: Table | undefined): Program[] {
  const rows = rowsOf(table).map((row) => ({
    title: text(row['program']),
    timePs: numberOf(row['time_ps']),
  }));
  rows.sort((a, b) => (b.timePs ?? -1) - (a.timePs ?? -1));
  return rows.map(({ title, timePs }) => ({
    title,
    label: timePs === null ? title : `${title} · ${format(timePs, 'ps')}`,
  }));
}

const CLASS_TOKENS: Readonly<Record<string, string>> = {
  matrix: '--q-0',
  fusion: '--q-3',
  elementwise: '--q-8',
  reduction: '--q-2',
  'data movement': '--q-1',
  collective: '--c-collective',
  control: '--c-idle',
  input: '--q-5',
  'custom call': '--q-4',
};

export function classToken(opClass: string): string {
  return CLASS_TOKENS[opClass] ?? '--q-8';
}

/** The classes in the graph, in a fixed order, for the legend. */
export function classesOf(nodes: readonly Node[]): string[] {
  const there = new Set(nodes.map(({ opClass }) => opClass));
  return Object.keys(CLASS_TOKENS).filter((name) => there.has(name));
}

/** How many of the operands are not shown: "+2 ↑", as values flow downwards; empty where all are. */
export function hiddenOperands({ nHiddenOperands: n }: Node): string {
  return n ? `+${n.toLocaleString('en-US')} ↑` : '';
}

export function hiddenUsers({ nHiddenUsers: n }: Node): string {
  return n ? `+${n.toLocaleString('en-US')} ↓` : '';
}

/** A name or shape that fits a node: of long ones the beginning and the end, which tell most. */
export function shortened(name: string, most: number): string {
  if (name.length <= most) return name;
  const tail = Math.floor((most - 1) / 3);
  return `${name.slice(0, most - 1 - tail)}…${name.slice(name.length - tail)}`;
}

/** What the second line of a node says: its shape, and its time if it was traced. */
export function shapeOf(node: Node): string {
  return shortened(node.shape.replace(/\{[^}]*\}/g, ''), 34);
}

export function timeOf(node: Node): string {
  if (node.timePs === null) return '';
  return node.timeFraction === null
    ? format(node.timePs, 'ps')
    : `${format(node.timePs, 'ps')} · ${format(node.timeFraction, 'fraction')}`;
}

/** The list of fusions to open, with one more or one less. */
export function toggled(open: string | undefined, name: string): string | undefined {
  const names = new Set((open ?? '').split(',').filter(Boolean));
  if (!names.delete(name)) names.add(name);
  return [...names].join(',') || undefined;
}

/**
 * The node that an arrow key leads to: up to a producer, down to a consumer, sideways to the nearest on the
 * same height.
 */
export function nextNode(
  graph: Graph,
  at: ReadonlyMap<number, { x: number; y: number }>,
  id: number,
  key: string,
): number | null {
  const here = at.get(id);
  if (!here) return null;
  const nearest = (ids: number[]): number | null =>
    ids.reduce<number | null>((best, other) => {
      const [a, b] = [at.get(other), best === null ? undefined : at.get(best)];
      return a && (!b || Math.abs(a.x - here.x) < Math.abs(b.x - here.x)) ? other : best;
    }, null);
  if (key === 'ArrowUp') return nearest(graph.edges.filter(({ to }) => to === id).map(({ from }) => from));
  if (key === 'ArrowDown') return nearest(graph.edges.filter(({ from }) => from === id).map(({ to }) => to));
  const sign = key === 'ArrowLeft' ? -1 : key === 'ArrowRight' ? 1 : 0;
  if (!sign) return null;
  return nearest(
    [...at]
      .filter(([, point]) => Math.abs(point.y - here.y) < 2 && (point.x - here.x) * sign > 0)
      .map(([other]) => other),
  );
}
