/** Framework operations: the four tables of shares become donuts; the table of operations begins with a sensible view. Pure. */
import { rowOf } from '../../api/table';
import type { Payload, Table } from '../../api/types';
import { paletteToken } from '../../base/color';
import type { TableData, TableView } from '../../widgets/table/model';

export interface Slice {
  name: string;
  title: string;
  token: string;
  selfTimePs: number | null;
  fraction: number;
}

export interface Donut {
  name: string;
  title: string;
  note: string;
  slices: Slice[];
}

const DONUTS = ['device_by_type', 'device_by_op', 'host_by_type', 'host_by_op'];
/** Slices that are no operation have the colour of idle time. */
const GREY = /^(idle|others?)$/i;
/** Columns that few need at first sight. */
const HIDDEN_AT_FIRST = ['host_cumulative_fraction', 'device_cumulative_fraction', 'avg_time_ps', 'avg_self_time_ps', 'rank', 'operational_intensity_flops_per_byte', 'eager'];

function slicesOf(table: Table): Slice[] {
  let nColours = 0;
  return Array.from({ length: table.n_rows }, (_, row) => {
    const { name, self_time_ps: time, fraction } = rowOf(table, row);
    const title = typeof name === 'string' ? name : 'unknown';
    const token = GREY.test(title) ? '--c-idle' : paletteToken(nColours++);
    return { name: `${row}`, title, token, selfTimePs: typeof time === 'number' ? time : null, fraction: typeof fraction === 'number' ? fraction : 0 };
  });
}

/** The donuts that have something to show, in the order device before host, types before operations. */
export function donutsOf(payload: Payload): Donut[] {
  return DONUTS.flatMap((name) => {
    const table = payload.tables[name];
    const slices = table ? slicesOf(table).filter((slice) => slice.fraction > 0) : [];
    return table && slices.length ? [{ name, title: table.title, note: table.note, slices }] : [];
  });
}

/** Shares of the slices that are shown, which sum to 1 again. */
export function shownShares(slices: readonly Slice[], hidden: ReadonlySet<string>): Map<string, number> {
  const shown = slices.filter((slice) => !hidden.has(slice.name));
  const sum = shown.reduce((total, slice) => total + slice.fraction, 0);
  return new Map(shown.map((slice) => [slice.name, sum > 0 ? slice.fraction / sum : 0]));
}

/** The view of the operations to begin with: the server's order; no column that tells nothing. */
export function initialView(data: TableData, idle: readonly string[]): TableView {
  const names = new Set(data.columns.map((column) => column.name));
  const hidden = [...HIDDEN_AT_FIRST.filter((name) => names.has(name)), ...idle];
  return { sort: null, query: '', filters: {}, hidden: new Set(hidden.length < names.size ? hidden : []) };
}

/** Columns whose sum means something. */
export const TOTALS = ['n_occurrences', 'total_self_time_ps', 'device_self_fraction', 'host_self_fraction'];

/** Whether idle time counts, from the URL's text and the server's default. */
export function countsIdle(text: string | undefined, initial: boolean): boolean {
  return text === undefined ? initial : text === 'true' || text === '1';
}
