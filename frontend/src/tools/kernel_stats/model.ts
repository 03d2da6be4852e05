/** Kernels: their grouping, the table's initial view, the time of a kernel's longest launch. Pure. */
import { readTable, type ColumnOf, type RowsOf } from '../../api/declared';
import { KERNEL_STATS } from '../../api/tables/kernel_stats';
import type { Payload, Table } from '../../api/types';
import type { TableData, TableView } from '../../widgets/table/model';

export const TABLES = KERNEL_STATS.page.tables;
export type Kernels = RowsOf<typeof TABLES.kernels>;
type KernelColumn = ColumnOf<typeof TABLES.kernels>;
type GroupColumn = 'kernel' | 'op' | 'library';

/** The rows of a grouping; `nameOf`: the name of a row's group. */
export interface Grouped {
  table: Table;
  nameOf: (row: number) => string;
}

export interface Grouping {
  name: string;
  title: string;
  /** The column of the table of kernels by which it groups. */
  column: GroupColumn | '';
  read: (payload: Payload) => Grouped;
}

/** The first is the page's default. */
export const GROUPINGS: readonly Grouping[] = [
  {
    name: 'launch',
    title: 'Kernel and operation',
    column: '',
    read: (payload) => ({ table: readTable(payload, TABLES.kernels).table, nameOf: () => '' }),
  },
  {
    name: 'kernel',
    title: 'Kernel',
    column: 'kernel',
    read: (payload) => groupedBy(readTable(payload, TABLES.by_kernel), 'kernel'),
  },
  {
    name: 'op',
    title: 'Operation',
    column: 'op',
    read: (payload) => groupedBy(readTable(payload, TABLES.by_op), 'op'),
  },
  {
    name: 'library',
    title: 'Library',
    column: 'library',
    read: (payload) => groupedBy(readTable(payload, TABLES.by_library), 'library'),
  },
];

function groupedBy<C extends GroupColumn>(
  rows: { readonly table: Table; text(name: C): (row: number) => string },
  column: C,
): Grouped {
  return { table: rows.table, nameOf: rows.text(column) };
}

export function groupingOf(name: string | undefined): Grouping {
  return GROUPINGS.find((grouping) => grouping.name === name) ?? (GROUPINGS[0] as Grouping);
}

/** Whether a row's occupancy was computed rather than reported by the tracer. */
export function isComputed(kernels: Kernels, row: number): boolean {
  return kernels.flag('is_occupancy_computed')(row);
}

/** What a kernel is, its time and how well it uses the device come first. */
export const ORDER: readonly KernelColumn[] = [
  'kernel',
  'op',
  'total_ps',
  'fraction',
  'uses_tensor_cores',
  'occupancy_fraction',
  'n_occurrences',
  'avg_ps',
  'max_ps',
  'is_tensor_core_eligible',
  'library',
];

const HIDDEN_AT_FIRST: readonly KernelColumn[] = [
  'rank',
  'is_occupancy_computed',
  'static_shared_bytes',
  'dynamic_shared_bytes',
  'min_ps',
  'n_registers',
  'shared_bytes',
  'block',
  'grid',
  'longest_host',
  'longest_start_ps',
];

/** The server's order; without rarely needed columns and those without information. */
export function initialView(data: TableData, idle: readonly string[]): TableView {
  const names = new Set(data.columns.map((column) => column.name));
  // That no kernel uses tensor cores is information.
  const hidden = [...HIDDEN_AT_FIRST, ...idle.filter((name) => !name.includes('tensor_core'))].filter(
    (name) => names.has(name),
  );
  return { sort: null, query: '', filters: {}, hidden: new Set(hidden) };
}

export const TOTALS: readonly KernelColumn[] = ['n_occurrences', 'total_ps', 'fraction'];

/** The parameters of the URL that belong to the table, dropped when the grouping changes. */
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
  kernels: Kernels,
  row: number,
): { host: string; params: Record<string, string> } | null {
  const host = kernels.text('longest_host')(row);
  const [startPs, lengthPs] = [kernels.number('longest_start_ps')(row), kernels.number('max_ps')(row)];
  if (!host || startPs === null || lengthPs === null) return null;
  return {
    host,
    params: { start_ps: String(Math.max(0, startPs - lengthPs)), end_ps: String(startPs + 2 * lengthPs) },
  };
}
