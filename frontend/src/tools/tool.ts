/** The props of every tool's view, and the conversion of payload tables into tables on the page. */
import { cellAt } from '../api/table';
import type { Column, Table, ToolInfo } from '../api/types';
import { categoryToken } from '../base/color';
import type { TableColumn, TableData } from '../widgets/table/model';

export interface ToolProps {
  run: string;
  /** The hosts to show; empty: the server's default. */
  hosts: string[];
  /** The tool's own part of the URL. */
  params: Readonly<Record<string, string>>;
  /**
   * Changes the tool's part of the URL: `push` for a step that Back undoes, `replace` for a stream of small
   * changes.
   */
  setParams(change: Record<string, string | undefined>, how: 'push' | 'replace'): void;
  info: ToolInfo;
}

/** The parameters that the server knows; the others (sort, search, zoom) are the page's own. */
export function serverParams(info: ToolInfo, params: ToolProps['params']): Record<string, string> {
  const serverNames = new Set(info.params.map((param) => param.name));
  return Object.fromEntries(Object.entries(params).filter(([name]) => serverNames.has(name)));
}

function tableColumn(column: Column): TableColumn {
  const { name, title, unit, kind, description, formula, unknown } = column;
  const words = column.kind === 'text' ? { words: column } : {};
  const head = { name, title, unit, kind, cell: (row: number) => cellAt(column, row), ...words };
  return {
    ...head,
    ...(description ? { description } : {}),
    ...(formula ? { formula } : {}),
    ...(unknown ? { unknown } : {}),
  };
}

/** A payload's table for the table widget; `only`: these columns in this order, where present. */
export function tableData(table: Table, only?: readonly string[]): TableData {
  const columns = only
    ? only.flatMap((name) => table.columns.find((column) => column.name === name) ?? [])
    : table.columns;
  return { columns: columns.map(tableColumn), nRows: table.n_rows };
}

/** The table with these columns first; the others follow in their own order. */
export function inOrder(data: TableData, first: readonly string[]): TableData {
  const place = (column: TableColumn): number => {
    const at = first.indexOf(column.name);
    return at < 0 ? first.length : at;
  };
  const columns = data.columns.map((column) => ({ ...column, isMain: first.includes(column.name) }));
  return { ...data, columns: columns.sort((a, b) => place(a) - place(b)) };
}

/** The color of a row's bars by the side it ran on, which `sideOf` returns: host, else device. */
export function sideToken(sideOf: (row: number) => string): (row: number) => string {
  return (row) => categoryToken(/host/i.test(sideOf(row)) ? 'host' : 'compute');
}

/**
 * Columns without information, hidden at first: unknown in every row, or (of several rows) the same word or
 * yes or no in each.
 */
export function idleColumns(data: TableData): string[] {
  const tellsNothing = (column: TableColumn): boolean => {
    const first = column.cell(0);
    if (first !== null && (column.kind === 'number' || data.nRows === 1)) return false;
    for (let row = 1; row < data.nRows; row++) if (column.cell(row) !== first) return false;
    return data.nRows > 0;
  };
  return data.columns.filter(tellsNothing).map((column) => column.name);
}

/** The columns that a page reads of a declared table of operations. */
interface OpRows {
  readonly length: number;
  text(name: 'op' | 'program'): (row: number) => string;
}

/** The row of an operation, of any program where none is named; -1: there is none. */
export function rowOfOp(ops: OpRows, program: string, op: string): number {
  const [opAt, programAt] = [ops.text('op'), ops.text('program')];
  for (let row = 0; row < ops.length; row++)
    if (opAt(row) === op && (!program || programAt(row) === program)) return row;
  return -1;
}

/** The parameters that choose a row's operation, or clear the choice if it is already chosen. */
export function opChoice(
  ops: OpRows,
  row: number,
  isChosen: boolean,
): { program: string | undefined; op: string | undefined } {
  return isChosen
    ? { program: undefined, op: undefined }
    : { program: ops.text('program')(row), op: ops.text('op')(row) };
}
