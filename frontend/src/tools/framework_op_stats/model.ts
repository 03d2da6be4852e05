/**
 * Framework operations: the four tables of shares become donuts; the table of operations starts with a
 * sensible view. Pure.
 */
import { readTable, type ColumnOf } from '../../api/declared';
import { FRAMEWORK_OP_STATS } from '../../api/tables/framework_op_stats';
import type { Payload } from '../../api/types';
import type { TableData, TableView } from '../../widgets/table/model';
import { donutOf, type Donut } from '../donuts';

export const TABLES = FRAMEWORK_OP_STATS.page.tables;
type OpColumn = ColumnOf<typeof TABLES.ops>;

const DONUTS = [TABLES.device_by_type, TABLES.device_by_op, TABLES.host_by_type, TABLES.host_by_op];
/** Columns hidden at first, since few users need them. */
const HIDDEN_AT_FIRST: readonly OpColumn[] = [
  'host_cumulative_fraction',
  'device_cumulative_fraction',
  'avg_time_ps',
  'avg_self_time_ps',
  'rank',
  'operational_intensity_flops_per_byte',
  'nearest_limit',
  'eager',
];

/** What an operation is, its time and what limits it come first. */
export const ORDER: readonly OpColumn[] = [
  'operation',
  'input_shapes',
  'call_stack',
  'type',
  'host_or_device',
  'total_self_time_ps',
  'device_self_fraction',
  'host_self_fraction',
  'bound_by',
  'flop_rate_flops_per_s',
  'compute_fraction',
  'tensor_core_fraction',
  'n_occurrences',
  'total_time_ps',
];

/** What each row of the table is: values of the parameter `group`, the server's default first. */
export const GROUPS = [
  { name: 'op', title: 'Operation' },
  { name: 'shape', title: 'Input shapes' },
  { name: 'stack', title: 'Call stack' },
] as const;

/** The chosen group, from the URL's text. */
export function groupOf(text: string | undefined): string {
  return GROUPS.find(({ name }) => name === text)?.name ?? GROUPS[0].name;
}

/** The donuts with something to show, in the order device before host, types before operations. */
export function donutsOf(payload: Payload): Donut[] {
  return DONUTS.flatMap((spec) => donutOf(spec.name, readTable(payload, spec), 'self_time_ps'));
}

/** What the operations are grouped by, besides their name. */
const DETAILS: readonly OpColumn[] = ['input_shapes', 'call_stack'];

/**
 * The initial view of the operations: the server's order; no column without information. Shapes and stacks
 * need the room of the type, which repeats the name.
 */
export function initialView(data: TableData, idle: readonly string[]): TableView {
  const names = new Set(data.columns.map((column) => column.name));
  const isDetailed = DETAILS.some((name) => names.has(name));
  const less: readonly OpColumn[] = isDetailed ? [...HIDDEN_AT_FIRST, 'type'] : HIDDEN_AT_FIRST;
  const hidden = [...less.filter((name) => names.has(name)), ...idle];
  return { sort: null, query: '', filters: {}, hidden: new Set(hidden.length < names.size ? hidden : []) };
}

/** Columns whose sum is meaningful. */
export const TOTALS: readonly OpColumn[] = [
  'n_occurrences',
  'total_self_time_ps',
  'device_self_fraction',
  'host_self_fraction',
];

/** Whether idle time counts, from the URL's text and the server's default. */
export function countsIdle(text: string | undefined, initial: boolean): boolean {
  return text === undefined ? initial : text === 'true' || text === '1';
}
