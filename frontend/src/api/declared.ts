/**
 * Reads declared tables and numbers of a payload. A column that the declaration lacks is a compile error; one
 * that the server did not send is an error on the page, never a zero.
 */
import { cellAt, numberAt, textAt } from './table';
import type { Column, NumberColumn, Payload, Scalar, Table, TextColumn } from './types';

export type Kind = 'number' | 'text' | 'bool';
type Columns = Readonly<Record<string, Kind>>;
type ValueOf<K extends Kind> = K extends 'number' ? number | null : K extends 'text' ? string : boolean;
type Named<C, K extends Kind> = { [N in keyof C]: C[N] extends K ? N : never }[keyof C] & string;

export interface TableSpec<R extends Columns, O extends Columns> {
  readonly name: string;
  readonly required: R;
  readonly optional: O;
}

export interface ScalarSpec {
  readonly name: string;
  readonly isOptional: boolean;
}

export function table<const R extends Columns, const O extends Columns>(
  name: string,
  required: R,
  optional: O,
): TableSpec<R, O> {
  return { name, required, optional };
}

export function scalar(name: string, isOptional: boolean): ScalarSpec {
  return { name, isOptional };
}

/** The server sent a different set of tables or columns from the one this page was built for. */
class ContractError extends Error {
  constructor(payload: Payload, what: string) {
    super(
      `The answer of ${payload.tool} has no ${what}. ` +
        'The page and the server have different versions: reload the page.',
    );
    this.name = 'ContractError';
  }
}

/** A row as an object; optional columns that the table lacks are undefined. */
export type Row<R extends Columns, O extends Columns> = { readonly [N in keyof R]: ValueOf<R[N]> } & {
  readonly [N in keyof O]?: ValueOf<O[N]>;
};
export type RowOf<S> = S extends TableSpec<infer R, infer O> ? Row<R, O> : never;
/** A column's name in a declared table. */
export type ColumnOf<S> = S extends TableSpec<infer R, infer O> ? (keyof R | keyof O) & string : never;
/** The result of `readTable` for a declaration. */
export type RowsOf<S> = S extends TableSpec<infer R, infer O> ? Rows<R, O> : never;

/** A table's cells by column and row. */
export class Rows<R extends Columns, O extends Columns> {
  private readonly byName: Map<string, Column>;

  constructor(
    private readonly payload: Payload,
    private readonly spec: TableSpec<R, O>,
    readonly table: Table,
  ) {
    this.byName = new Map(table.columns.map((column) => [column.name, column]));
  }

  get length(): number {
    return this.table.n_rows;
  }

  get note(): string {
    return this.table.note;
  }

  has(name: keyof O & string): boolean {
    return this.byName.has(name);
  }

  /** null: unknown. */
  number(name: Named<R, 'number'> | Named<O, 'number'>): (row: number) => number | null {
    const column = this.find(name, 'number');
    return (row) => (column?.kind === 'number' ? numberAt(column, row) : null);
  }

  /** Empty: unknown. */
  text(name: Named<R, 'text'> | Named<O, 'text'>): (row: number) => string {
    const column = this.find(name, 'text');
    return (row) => (column?.kind === 'text' ? (textAt(column, row) ?? '') : '');
  }

  /** Whether the cell is known to be true. */
  flag(name: Named<R, 'bool'> | Named<O, 'bool'>): (row: number) => boolean {
    const column = this.find(name, 'bool');
    return (row) => (column ? cellAt(column, row) === true : false);
  }

  /**
   * A column of numbers whose name is data: another table lists it, such as one per category of time. null:
   * unknown. Raises ContractError if the table has no such column, so that a renamed column never reads as 0.
   */
  numberNamed(name: string): (row: number) => number | null {
    const column = this.byName.get(name);
    if (column?.kind !== 'number')
      throw new ContractError(this.payload, `number column ${name} in table ${this.spec.name}`);
    return (row) => numberAt(column, row);
  }

  /** All cells of a column at once, for large tables. Unknown is null or NaN. */
  numbers(name: Named<R, 'number'>): NumberColumn['values'] {
    return (this.find(name, 'number') as NumberColumn).values;
  }

  /** A column of numbers as a list, null where unknown; an optional one that the table lacks is all unknown. */
  column(name: Named<R, 'number'> | Named<O, 'number'>): (number | null)[] {
    return Array.from({ length: this.length }, (_, row) => row).map(this.number(name));
  }

  /** The heading of a column; empty for an optional one that the table lacks. */
  title(name: (keyof R | keyof O) & string): string {
    return this.byName.get(name)?.title ?? '';
  }

  /** A column of texts as codes into distinct strings, -1 unknown. */
  texts(name: Named<R, 'text'>): TextColumn {
    return this.find(name, 'text') as TextColumn;
  }

  /** All rows as objects, for small tables. */
  all(): Row<R, O>[] {
    const readers = [...this.readers()];
    const rowAt = (row: number): Row<R, O> =>
      Object.fromEntries(readers.map(([name, read]) => [name, read(row)])) as Row<R, O>;
    return Array.from({ length: this.length }, (_, row) => rowAt(row));
  }

  private *readers(): Iterable<[string, (row: number) => string | number | boolean | null]> {
    const kinds: Columns = { ...this.spec.required, ...this.spec.optional };
    for (const [name, kind] of Object.entries(kinds)) {
      const column = this.find(name, kind);
      if (!column) continue;
      yield [
        name,
        kind === 'text'
          ? (row) => (column.kind === 'text' ? (textAt(column, row) ?? '') : '')
          : kind === 'number'
            ? (row) => (column.kind === 'number' ? numberAt(column, row) : null)
            : (row) => cellAt(column, row) === true,
      ];
    }
  }

  /** undefined: an optional column that the table lacks. */
  private find(name: string, kind: Kind): Column | undefined {
    const column = this.byName.get(name);
    if (column ? column.kind !== kind : name in this.spec.required)
      throw new ContractError(this.payload, `${kind} column ${name} in table ${this.spec.name}`);
    return column;
  }
}

/** A table that every answer has. Raises ContractError where it is missing. */
export function readTable<R extends Columns, O extends Columns>(
  payload: Payload,
  spec: TableSpec<R, O>,
): Rows<R, O> {
  const rows = readIfAny(payload, spec);
  if (!rows) throw new ContractError(payload, `table ${spec.name}`);
  return rows;
}

/** A table that only some answers have. */
export function readIfAny<R extends Columns, O extends Columns>(
  payload: Payload,
  spec: TableSpec<R, O>,
): Rows<R, O> | null {
  const tableOfAnswer = payload.tables[spec.name];
  return tableOfAnswer ? new Rows(payload, spec, tableOfAnswer) : null;
}

/** A declared number with its title and note; undefined: an optional one that the answer lacks. */
export function readScalar(payload: Payload, spec: ScalarSpec): Scalar | undefined {
  const scalarOfAnswer = payload.scalars[spec.name];
  if (!scalarOfAnswer && !spec.isOptional) throw new ContractError(payload, `number ${spec.name}`);
  return scalarOfAnswer;
}

/** The value of a declared number; null: unknown, or an optional one that the answer lacks. */
export function readNumber(payload: Payload, spec: ScalarSpec): number | null {
  const value = readScalar(payload, spec)?.value;
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** A number at the top of a page, under its declared name. */
export interface TileScalar extends Scalar {
  name: string;
}

/**
 * The numbers that the page shows at its top, which the server chooses; their values are those of `from`,
 * which may be an answer about a part of the page.
 */
export function readTiles(payload: Payload, from: Payload = payload): TileScalar[] {
  return payload.tiles.flatMap((name) => {
    const scalarOfAnswer = from.scalars[name];
    return scalarOfAnswer ? [{ name, ...scalarOfAnswer }] : [];
  });
}
