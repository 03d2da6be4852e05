/** Reading rows of a payload's columns, whichever way they travelled (JSON or binary). Unknown is always null. */
import type { Column, NumberColumn, Payload, Table, TextColumn } from './types';

export type Cell = string | number | boolean | null;

export function textAt(column: TextColumn, row: number): string | null {
  const code = column.codes[row] ?? -1;
  return code < 0 ? null : (column.strings[code] ?? null);
}

export function numberAt(column: NumberColumn, row: number): number | null {
  const value = column.values[row];
  return value === undefined || value === null || Number.isNaN(value) ? null : value;
}

export function cellAt(column: Column, row: number): Cell {
  if (column.kind === 'text') return textAt(column, row);
  if (column.kind === 'number') return numberAt(column, row);
  const value = column.values[row];
  return value === undefined || value === null ? null : Boolean(value);
}

export function findColumn(table: Table | undefined, name: string): Column | undefined {
  return table?.columns.find((column) => column.name === name);
}

export function numberColumn(table: Table | undefined, name: string): NumberColumn | undefined {
  const column = findColumn(table, name);
  return column?.kind === 'number' ? column : undefined;
}

export function textColumn(table: Table | undefined, name: string): TextColumn | undefined {
  const column = findColumn(table, name);
  return column?.kind === 'text' ? column : undefined;
}

/** Values of one row by column name. */
export function rowOf(table: Table, row: number): Record<string, Cell> {
  return Object.fromEntries(table.columns.map((column) => [column.name, cellAt(column, row)]));
}

export function rowsOf(table: Table | undefined): Record<string, Cell>[] {
  return table ? Array.from({ length: table.n_rows }, (_, row) => rowOf(table, row)) : [];
}

/** A cell as a number; anything else is unknown. */
export function numberOf(cell: Cell | undefined): number | null {
  return typeof cell === 'number' && Number.isFinite(cell) ? cell : null;
}

export function scalarNumber(payload: Payload, name: string): number | null {
  const value = payload.scalars[name]?.value;
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
