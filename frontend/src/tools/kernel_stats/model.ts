/** Kernels: how they are grouped, what the table begins with, where a kernel's longest launch is. Pure. */
import { numberOf, rowOf } from '../../api/table';
import type { Table } from '../../api/types';
import type { TableData, TableView } from '../../widgets/table/model';

export interface Grouping {
  name: string;
  title: string;
  table: string;
  /** The column of the table of kernels that a group is of. */
  column: string;
}

/** The first is what the page begins with. */
export const GROUPINGS: readonly Grouping[] = [
  { name: 'launch', title: 'Kernel and operation', table: 'kernels', column: '' },
  { name: 'kernel', title: 'Kernel', table: 'by_kernel', column: 'kernel' },
  { name: 'op', title: 'Operation', table: 'by_op', column: 'op' },
  { name: 'library', title: 'Library', table: 'by_library', column: 'library' },
];

export function groupingOf(name: string | undefined): Grouping {
  return GROUPINGS.find((grouping) => grouping.name === name) ?? (GROUPINGS[0] as Grouping);
}

/** Whether a row's occupancy is not the tracer's. */
export function isComputed(table: Table, row: number): boolean {
  return rowOf(table, row)['is_occupancy_computed'] === true;
}

const HIDDEN_AT_FIRST = [
  'is_occupancy_computed',
  'static_shared_bytes',
  'dynamic_shared_bytes',
  'longest_host',
  'longest_start_ps',
];

/** The server's order; without the columns that few need and those that tell nothing. */
export function initialView(data: TableData, idle: readonly string[]): TableView {
  const names = new Set(data.columns.map((column) => column.name));
  // That no kernel uses tensor cores is an answer, not nothing.
  const hidden = [...HIDDEN_AT_FIRST, ...idle.filter((name) => !name.includes('tensor_core'))].filter(
    (name) => names.has(name),
  );
  return { sort: null, query: '', filters: {}, hidden: new Set(hidden) };
}

export const TOTALS = ['n_occurrences', 'total_ps', 'fraction'];

/** The parameters of the URL that belong to the table, to be dropped with its grouping. */
export function withoutTable(params: Readonly<Record<string, string>>): Record<string, undefined> {
  const names = Object.keys(params).filter(
    (name) => ['sort', 'q', 'hide'].includes(name) || name.startsWith('f.'),
  );
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

/**
 * The choice that shows a row's longest launch on the timeline, with as much time around it; null: not known.
 */
export function longestLaunch(
  table: Table,
  row: number,
): { host: string; params: Record<string, string> } | null {
  const { longest_host: host, longest_start_ps: start, max_ps: length } = rowOf(table, row);
  const [startPs, lengthPs] = [numberOf(start), numberOf(length)];
  if (typeof host !== 'string' || startPs === null || lengthPs === null) return null;
  return {
    host,
    params: { start_ps: String(Math.max(0, startPs - lengthPs)), end_ps: String(startPs + 2 * lengthPs) },
  };
}
