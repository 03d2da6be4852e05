/**
 * Tables of shares become donuts: slices with their colours, and shares anew when some are taken out. Pure.
 */
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

/** What a donut reads of a declared table of shares, whose time is in column T. */
interface Shares<T extends string> {
  readonly length: number;
  readonly table: Table;
  text(name: 'name'): (row: number) => string;
  number(name: 'fraction' | T): (row: number) => number | null;
  title(name: T): string;
}

/** The donut of a table of shares; none where nothing took time. */
export function donutOf<T extends string>(
  name: string,
  shares: Shares<T>,
  timeColumn: T,
  labelOf = (title: string): string => title,
): Donut[] {
  const slices = slicesOf(shares, timeColumn, labelOf).filter((slice) => slice.fraction > 0);
  if (!slices.length) return [];
  const { title, note } = shares.table;
  return [{ name, title, note, timeName: shares.title(timeColumn), slices }];
}

function slicesOf<T extends string>(
  shares: Shares<T>,
  timeColumn: T,
  labelOf: (title: string) => string,
): Slice[] {
  const [name, timePs, fraction] = [
    shares.text('name'),
    shares.number(timeColumn),
    shares.number('fraction'),
  ];
  let nColours = 0;
  return Array.from({ length: shares.length }, (_, row) => {
    const title = name(row) || 'unknown';
    return {
      name: `${row}`,
      title,
      label: labelOf(title),
      token: GREY.test(title) ? '--c-idle' : paletteToken(nColours++),
      timePs: timePs(row),
      fraction: fraction(row) ?? 0,
    };
  });
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
