/**
 * Operations of compiled programs: the visible pies, the table's initial columns, the filter of a slice.
 * Pure.
 */
import { readIfAny, readTable, type ColumnOf } from '../../api/declared';
import { HLO_STATS } from '../../api/tables/hlo_stats';
import type { Payload } from '../../api/types';
import type { TableData, TableView } from '../../widgets/table/model';
import { donutOf, type Donut } from '../donuts';

export const TABLES = HLO_STATS.page.tables;
type OpColumn = ColumnOf<typeof TABLES.ops>;

interface Pie {
  shares: typeof TABLES.by_category;
  /** The column of operations that a slice filters. */
  column: OpColumn;
  /** The filter's text by the slice's name, where they differ. */
  value?: Readonly<Record<string, string>>;
}

/** Pies of every answer. */
const PIES: readonly Pie[] = [
  { shares: TABLES.by_category, column: 'category' },
  { shares: TABLES.by_op, column: 'op' },
  { shares: TABLES.by_bound, column: 'bound_by' },
  { shares: TABLES.by_source, column: 'source' },
  { shares: TABLES.by_program, column: 'program' },
];
/** Pies that only some programs have. */
const RARE_PIES: readonly Pie[] = [
  {
    shares: TABLES.by_rematerialized,
    column: 'is_rematerialized',
    value: { No: 'no', Rematerialized: 'yes' },
  },
  {
    shares: TABLES.by_outside,
    column: 'is_outside_compiled',
    value: { No: 'no', 'Outside compilation': 'yes' },
  },
];

/** Columns hidden at first, since few users need them. */
const HIDDEN_AT_FIRST: readonly OpColumn[] = [
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
  'avg_self_time_ps',
  'memory_bandwidth_bytes_per_s',
  'operational_intensity_flops_per_byte',
];

/** What an operation is, its time and what limits it come first. */
export const ORDER: readonly OpColumn[] = [
  'op',
  'program',
  'category',
  'total_self_time_ps',
  'self_fraction',
  'bound_by',
  'flop_rate_flops_per_s',
  'provenance',
  'n_occurrences',
  'source',
];

/** The table with framework operations as `jit(f)/mul`: in a trace they are `name:type`, often with no type. */
export function withPlainNames(data: TableData): TableData {
  const label = (text: string): string => text.replace(/:$/, '');
  return {
    ...data,
    columns: data.columns.map((column) => (column.name === 'provenance' ? { ...column, label } : column)),
  };
}

/** Pies with information: not those of a single slice, but always the first. */
export function donutsOf(payload: Payload): Donut[] {
  const donuts = [
    ...PIES.map(({ shares }) => donutOf(shares.name, readTable(payload, shares), 'self_time_ps')),
    ...RARE_PIES.map(({ shares }) => {
      const rows = readIfAny(payload, shares);
      return rows ? donutOf(shares.name, rows, 'self_time_ps') : [];
    }),
  ];
  return donuts.flatMap((donut, i) => donut.filter(({ slices }) => i === 0 || slices.length > 1));
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

/** The table filter of a slice; null: the slice has none. */
export function filterOf(donut: string, slice: string): Record<string, string> | null {
  const pie = [...PIES, ...RARE_PIES].find(({ shares }) => shares.name === donut);
  if (!pie || slice === 'Other' || slice.startsWith('(no ')) return null;
  // An operation whose name occurs in several programs is listed with its program.
  const shared = donut === TABLES.by_op.name ? /^(\S+) of (.+)$/.exec(slice) : null;
  if (shared) return { 'f.op': `=${shared[1] ?? ''}`, 'f.program': `=${shared[2] ?? ''}` };
  // Source lines are shortened in the pie.
  return { [`f.${pie.column}`]: pie.value?.[slice] ?? (pie.column === 'source' ? slice : `=${slice}`) };
}

export const TOTALS: readonly OpColumn[] = ['n_occurrences', 'total_self_time_ps', 'self_fraction'];
