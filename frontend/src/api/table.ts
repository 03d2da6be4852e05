/** Reads rows of a payload's columns, whether sent as JSON or binary. Unknown is always null. */
import type { Column, NumberColumn, Table, TextColumn } from './types';

export type Cell = string | number | boolean | null;

export function textAt(column: TextColumn, row: number): string | null {
  const code = column.codes[row] ?? -1;
  return code < 0 ? null : (column.strings[code] ?? null);
}

export function numberAt(column: NumberColumn, row: number): number | null {
  const value = column.values[row];
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

export function cellAt(column: Column, row: number): Cell {
  if (column.kind === 'text') return textAt(column, row);
  if (column.kind === 'number') return numberAt(column, row);
  const value = column.values[row];
  return value === undefined || value === null ? null : Boolean(value);
}

function isSameList(a: ArrayLike<unknown>, b: ArrayLike<unknown>): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
}

/** Whether two tables have equal contents. */
export function isSameTable(one: Table | undefined, other: Table | undefined): boolean {
  if (!one || !other) return one === other;
  if (one.n_rows !== other.n_rows || one.note !== other.note || one.columns.length !== other.columns.length)
    return false;
  return one.columns.every((a, i) => {
    const b = other.columns[i] as Column;
    if (a.name !== b.name) return false;
    if (a.kind === 'text')
      return b.kind === 'text' && isSameList(a.codes, b.codes) && isSameList(a.strings, b.strings);
    return b.kind === a.kind && isSameList(a.values, b.values);
  });
}
