/**
 * Operations of compiled programs: which pies are shown, what the table begins with, what a slice filters.
 * Pure.
 */
import type { Payload } from '../../api/types';
import type { TableData, TableView } from '../../widgets/table/model';
import { donutOf, type Donut } from '../donuts';

/**
 * Tables of shares, and the column of operations that a slice filters (with its text, where that is not the
 * slice's name).
 */
const DONUTS: Readonly<Record<string, { column: string; value?: Readonly<Record<string, string>> }>> = {
  by_category: { column: 'category' },
  by_op: { column: 'op' },
  by_bound: { column: 'bound_by' },
  by_source: { column: 'source' },
  by_program: { column: 'program' },
  by_rematerialized: { column: 'is_rematerialized', value: { No: 'no', Rematerialized: 'yes' } },
  by_outside: { column: 'is_outside_compiled', value: { No: 'no', 'Outside compilation': 'yes' } },
};

/** Columns that few need at first sight. */
const HIDDEN_AT_FIRST = [
  'rank',
  'program',
  'total_time_ps',
  'avg_time_ps',
  'cumulative_fraction',
  'dma_stall_fraction',
  'normalized_flops_per_s',
  'hbm_bytes_per_s',
  'cmem_read_bytes_per_s',
  'cmem_write_bytes_per_s',
  'vmem_read_bytes_per_s',
  'vmem_write_bytes_per_s',
  'expression',
  'core',
  'device_time_fraction',
  'all_memories_flops_per_byte',
  'nearest_limit',
];

/** Pies that tell something: not those of a single slice, but always the first. */
export function donutsOf(payload: Payload): Donut[] {
  return Object.keys(DONUTS).flatMap((name, i) =>
    donutOf(name, payload.tables[name], 'self_time_ps').filter((donut) => i === 0 || donut.slices.length > 1),
  );
}

export function initialView(data: TableData, idle: readonly string[]): TableView {
  const names = new Set(data.columns.map((column) => column.name));
  const programs = new Set(
    Array.from({ length: Math.min(data.nRows, 1000) }, (_, row) =>
      data.columns.find((column) => column.name === 'program')?.cell(row),
    ),
  );
  const hidden = [
    ...HIDDEN_AT_FIRST.filter((name) => names.has(name) && !(name === 'program' && programs.size > 1)),
    ...idle,
  ];
  return { sort: null, query: '', filters: {}, hidden: new Set(hidden.length < names.size ? hidden : []) };
}

/** The filter of the table that a slice stands for; null: it stands for none. */
export function filterOf(donut: string, slice: string): Record<string, string> | null {
  const found = DONUTS[donut];
  if (!found || slice === 'Other' || slice.startsWith('(no ')) return null;
  // An operation whose name several programs share is called by both.
  const shared = donut === 'by_op' ? /^(\S+) of (.+)$/.exec(slice) : null;
  if (shared) return { 'f.op': `=${shared[1] ?? ''}`, 'f.program': `=${shared[2] ?? ''}` };
  // Source lines are shortened in the pie.
  return { [`f.${found.column}`]: found.value?.[slice] ?? (found.column === 'source' ? slice : `=${slice}`) };
}

export const TOTALS = ['n_occurrences', 'total_self_time_ps', 'self_fraction'];
