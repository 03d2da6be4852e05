/**
 * Tables of shares become donuts: slices with their colors, and shares recomputed when some slices are
 * hidden. Pure.
 */
import type { Table } from '../api/types';
import { paletteToken } from '../base/color';

export interface Slice {
  name: string;
  title: string;
  /** The text in the list next to the donut. */
  label: string;
  token: string;
  timePs: number | null;
  fraction: number;
}

export interface Donut {
  name: string;
  title: string;
  note: string;
  /** The kind of time that the slices measure. */
  timeName: string;
  slices: Slice[];
}

/** Slices that are no operation have the color of idle time. */
const GREY = /^(idle|others?)$/i;

/** The columns of a declared table of shares that a donut reads; its time is in column T. */
interface Shares<T extends string> {
  readonly length: number;
  readonly table: Table;
  text(name: 'name'): (row: number) => string;
  number(name: 'fraction' | T): (row: number) => number | null;
  title(name: T): string;
}

/** The donut of a table of shares; null if nothing took time. */
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

/** From this share on, one slice makes a ring say nothing that a bar does not. */
const NEARLY_ALL = 0.9;

/** Whether one slice is nearly all, so that the others can hardly be seen in a ring. */
export function isOneSided({ slices }: Donut): boolean {
  return slices.some(({ fraction }) => fraction >= NEARLY_ALL);
}

/** Shares of the visible slices, which sum to 1 again. */
export function shownShares(slices: readonly Slice[], hidden: ReadonlySet<string>): Map<string, number> {
  const shown = slices.filter((slice) => !hidden.has(slice.name));
  const sum = shown.reduce((total, slice) => total + slice.fraction, 0);
  return new Map(shown.map((slice) => [slice.name, sum > 0 ? slice.fraction / sum : 0]));
}
