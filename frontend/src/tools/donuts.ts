/**
 * Tables of shares become donuts: slices with their colours, and shares anew when some are taken out. Pure.
 */
import { numberColumn, rowOf } from '../api/table';
import type { Table } from '../api/types';
import { paletteToken } from '../base/color';

export interface Slice {
  name: string;
  title: string;
  /** What the list beside the donut says where the title is no path. */
  label: string;
  token: string;
  timePs: number | null;
  fraction: number;
}

export interface Donut {
  name: string;
  title: string;
  note: string;
  /** What the slices' time is. */
  timeName: string;
  slices: Slice[];
}

/** Slices that are no operation have the colour of idle time. */
const GREY = /^(idle|others?)$/i;

function slicesOf(table: Table, timeColumn: string, labelOf: (title: string) => string): Slice[] {
  let nColours = 0;
  return Array.from({ length: table.n_rows }, (_, row) => {
    const { name, [timeColumn]: time, fraction } = rowOf(table, row);
    const title = typeof name === 'string' ? name : 'unknown';
    const token = GREY.test(title) ? '--c-idle' : paletteToken(nColours++);
    return {
      name: `${row}`,
      title,
      label: labelOf(title),
      token,
      timePs: typeof time === 'number' ? time : null,
      fraction: typeof fraction === 'number' ? fraction : 0,
    };
  });
}

/** The donut of a table with `name`, a time and `fraction`; none where nothing took time. */
export function donutOf(
  name: string,
  table: Table | undefined,
  timeColumn: string,
  labelOf = (title: string): string => title,
): Donut[] {
  const slices = table ? slicesOf(table, timeColumn, labelOf).filter((slice) => slice.fraction > 0) : [];
  return table && slices.length
    ? [
        {
          name,
          title: table.title,
          note: table.note,
          timeName: numberColumn(table, timeColumn)?.title ?? 'Time',
          slices,
        },
      ]
    : [];
}

/**
 * Whether a name is a path of scopes or stages: its end tells more than its beginning. A C++ kernel's type is
 * none.
 */
export function isPath(name: string): boolean {
  return /^[^<>\s]*(?:\/|::)[^<>\s]+$/.test(name);
}

/** Shares of the slices that are shown, which sum to 1 again. */
export function shownShares(slices: readonly Slice[], hidden: ReadonlySet<string>): Map<string, number> {
  const shown = slices.filter((slice) => !hidden.has(slice.name));
  const sum = shown.reduce((total, slice) => total + slice.fraction, 0);
  return new Map(shown.map((slice) => [slice.name, sum > 0 ? slice.fraction / sum : 0]));
}
