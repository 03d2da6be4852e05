/** The graph viewer's payload as nodes, edges and lists. Pure. */
import { readNumber, readTable } from '../../api/declared';
import { GRAPH_VIEWER } from '../../api/tables/graph_viewer';
import type { Payload } from '../../api/types';
import { format } from '../../base/units';

export const TABLES = GRAPH_VIEWER.page.tables;
const SCALARS = GRAPH_VIEWER.page.scalars;

export interface Node {
  id: number;
  name: string;
  opcode: string;
  opClass: string;
  kind: string;
  shape: string;
  /** The opened fusion that contains it; -1: none. */
  frame: number;
  isFrame: boolean;
  depth: number;
  timePs: number | null;
  /** Its time has not been requested yet. */
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

function words(text: string): string[] {
  return text.split(' ').filter(Boolean);
}

function nodesOf(payload: Payload): Node[] {
  const rows = readTable(payload, TABLES.nodes);
  const awaitsTime = !rows.has('time_ps');
  return rows.all().map((row) => ({
    id: row.node ?? -1,
    name: row.name,
    opcode: row.opcode,
    opClass: row.op_class,
    kind: row.kind,
    shape: row.shape,
    frame: row.frame ?? -1,
    isFrame: row.is_frame,
    depth: row.depth ?? 0,
    timePs: row.time_ps ?? null,
    awaitsTime,
    timeFraction: row.time_fraction ?? null,
    nOccurrences: row.n_occurrences ?? 0,
    nHiddenOperands: row.n_hidden_operands ?? 0,
    nHiddenUsers: row.n_hidden_users ?? 0,
    calls: words(row.calls),
    expression: row.expression,
    opName: row.op_name ?? '',
    opType: row.op_type ?? '',
    source: row.source ?? '',
    stack: row.stack ?? '',
  }));
}

export function graphOf(payload: Payload): Graph {
  const nodes = nodesOf(payload);
  const nodeIds = new Set(nodes.filter(({ isFrame }) => !isFrame).map(({ id }) => id));
  const edges = readTable(payload, TABLES.edges)
    .all()
    .map(({ from, to, operand, shape }) => ({ from: from ?? -1, to: to ?? -1, operand: operand ?? 0, shape }))
    .filter(({ from, to }) => nodeIds.has(from) && nodeIds.has(to));
  return {
    nodes,
    edges,
    center: readNumber(payload, SCALARS.center) ?? -1,
    nCut: readNumber(payload, SCALARS.n_cut) ?? 0,
  };
}

export function chosenOf(payload: Payload): Chosen {
  const rows = readTable(payload, TABLES.chosen);
  return {
    program: rows.text('program')(0),
    op: rows.text('op')(0),
    computation: rows.text('computation')(0),
    callers: words(rows.text('callers')(0)),
    entry: rows.text('entry')(0),
  };
}

export interface Program {
  title: string;
  label: string;
}

/** The programs, longest total time first. */
export function programsOf(payload: Payload): Program[] {
  const rows = readTable(payload, TABLES.programs).all();
  rows.sort((a, b) => (b.time_ps ?? -1) - (a.time_ps ?? -1));
  return rows.map(({ program, time_ps }) => ({
    title: program,
    label: time_ps === null ? program : `${program} · ${format(time_ps, 'ps')}`,
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
  const present = new Set(nodes.map(({ opClass }) => opClass));
  return Object.keys(CLASS_TOKENS).filter((name) => present.has(name));
}

/** The number of operands not shown: "+2 ↑", as values flow downward; empty if all are shown. */
export function hiddenOperands({ nHiddenOperands: n }: Node): string {
  return n ? `+${n.toLocaleString('en-US')} ↑` : '';
}

export function hiddenUsers({ nHiddenUsers: n }: Node): string {
  return n ? `+${n.toLocaleString('en-US')} ↓` : '';
}

/** A name or shape that fits a node: the beginning and the end of a long one, which identify it best. */
export function shortened(name: string, most: number): string {
  if (name.length <= most) return name;
  const tail = Math.floor((most - 1) / 3);
  return `${name.slice(0, most - 1 - tail)}…${name.slice(name.length - tail)}`;
}

/** The second line of a node: its shape, and its time if it was traced. */
export function shapeOf(node: Node): string {
  return shortened(node.shape.replace(/\{[^}]*\}/g, ''), 34);
}

export function timeOf(node: Node): string {
  if (node.timePs === null) return '';
  return node.timeFraction === null
    ? format(node.timePs, 'ps')
    : `${format(node.timePs, 'ps')} · ${format(node.timeFraction, 'fraction')}`;
}

/** The list of fusions to open, with one added or removed. */
export function toggled(open: string | undefined, name: string): string | undefined {
  const names = new Set((open ?? '').split(',').filter(Boolean));
  if (!names.delete(name)) names.add(name);
  return [...names].join(',') || undefined;
}

/**
 * The node that an arrow key leads to: up to a producer, down to a consumer, sideways to the nearest at the
 * same height.
 */
export function nextNode(
  graph: Graph,
  centers: ReadonlyMap<number, { x: number; y: number }>,
  id: number,
  key: string,
): number | null {
  const start = centers.get(id);
  if (!start) return null;
  const nearest = (ids: number[]): number | null =>
    ids.reduce<number | null>((best, other) => {
      const [a, b] = [centers.get(other), best === null ? undefined : centers.get(best)];
      return a && (!b || Math.abs(a.x - start.x) < Math.abs(b.x - start.x)) ? other : best;
    }, null);
  if (key === 'ArrowUp') return nearest(graph.edges.filter(({ to }) => to === id).map(({ from }) => from));
  if (key === 'ArrowDown') return nearest(graph.edges.filter(({ from }) => from === id).map(({ to }) => to));
  const sign = key === 'ArrowLeft' ? -1 : key === 'ArrowRight' ? 1 : 0;
  if (!sign) return null;
  return nearest(
    [...centers]
      .filter(([, point]) => Math.abs(point.y - start.y) < 2 && (point.x - start.x) * sign > 0)
      .map(([other]) => other),
  );
}
