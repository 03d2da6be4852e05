/** Payloads and tables for tests, made from plain columns. */
import type { Kind, ScalarSpec, TableSpec } from '../api/declared';
import type { Column, Payload, Scalar, Table } from '../api/types';

type Columns = Readonly<Record<string, Kind>>;
type Cells = (number | string | boolean | null)[];
type AnySpec = TableSpec<Columns, Columns>;
type CellsOf<K extends Kind> = K extends 'number'
  ? readonly (number | null)[]
  : K extends 'text'
    ? readonly (string | null)[]
    : readonly boolean[];

/** A table of a declaration. Required columns that are not given exist, and are unknown in each row. */
export function tableFor<R extends Columns, O extends Columns>(
  spec: TableSpec<R, O>,
  cells: { readonly [N in keyof R]?: CellsOf<R[N]> } & { readonly [N in keyof O]?: CellsOf<O[N]> },
  title = '',
): Table {
  const given = new Map(Object.entries(cells) as unknown as [string, Cells][]);
  const nRows = [...given.values()][0]?.length ?? 0;
  const kinds: Columns = { ...spec.required, ...spec.optional };
  const names = Object.keys(kinds).filter((name) => name in spec.required || given.has(name));
  return {
    title,
    note: '',
    n_rows: nRows,
    columns: names.map((name) =>
      columnFor(name, kinds[name] as Kind, given.get(name) ?? Array<null>(nRows).fill(null)),
    ),
  };
}

function columnFor(name: string, kind: Kind, cells: Cells): Column {
  const head = { name, title: name, unit: '' } as const;
  if (kind === 'number') return { ...head, kind, values: cells as (number | null)[] };
  if (kind === 'bool') return { ...head, kind, values: cells.map(Boolean) };
  return {
    ...head,
    kind,
    strings: cells.map((cell) => String(cell ?? '')),
    codes: cells.map((cell, i) => (cell === null ? -1 : i)),
  };
}

export function tableOf(columns: Record<string, (number | string | boolean | null)[]>, title = ''): Table {
  const entries = Object.entries(columns);
  return {
    title,
    note: '',
    n_rows: entries[0]?.[1].length ?? 0,
    columns: entries.map(([name, values]) =>
      values.some((value) => typeof value === 'string')
        ? {
            name,
            title: name,
            unit: '',
            kind: 'text',
            strings: values.map(String),
            codes: values.map((value, i) => (value === null ? -1 : i)),
          }
        : values.some((value) => typeof value === 'boolean')
          ? { name, title: name, unit: '', kind: 'bool', values: values as (boolean | null)[] }
          : {
              name,
              title: name,
              unit: name.endsWith('_fraction') ? 'fraction' : 'ps',
              kind: 'number',
              values: values as (number | null)[],
            },
    ),
  };
}

/** Scalars of those values by name. */
export function scalarsOf(values: Record<string, number | null>): Payload['scalars'] {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, { value, unit: '', title: name, note: '' }]),
  );
}

export function payloadOf(parts: Partial<Payload> = {}): Payload {
  return {
    tool: 't',
    run: 'r',
    hosts: ['h'],
    verdict: null,
    is_diagnosed: true,
    scalars: {},
    tiles: [],
    tables: {},
    diagnostics: [],
    ...parts,
  };
}

const UNKNOWN: Record<Kind, string | number | boolean | null> = { number: null, text: '', bool: false };

interface AnyQuestion {
  tables: Record<string, AnySpec>;
  scalars: Record<string, ScalarSpec>;
}

function emptyColumn(name: string, kind: Kind, n: number): Column {
  const head = { name, title: name, unit: '' as const };
  const values = Array<Cells[0]>(n).fill(UNKNOWN[kind]);
  if (kind === 'text') return { ...head, kind, strings: [''], codes: values.map(() => 0) };
  return kind === 'bool'
    ? { ...head, kind, values: values.map(Boolean) }
    : { ...head, kind, values: values as null[] };
}

/** Columns of the declared kinds, which plain values do not always determine. */
function ofKind(column: Column, kind: Kind | undefined): Column {
  const { name, title, unit } = column;
  if (kind === 'text' && column.kind === 'number')
    return { name, title, unit, kind, strings: [''], codes: Array.from(column.values, () => -1) };
  if (kind === 'bool' && column.kind === 'number')
    return { name, title, unit, kind, values: Array.from(column.values, Boolean) };
  return column;
}

/** A table with all columns that its declaration requires: those not given are unknown. */
function completeTable(spec: AnySpec, table: Table): Table {
  const kinds = { ...spec.optional, ...spec.required };
  const given = new Set(table.columns.map(({ name }) => name));
  const missing = Object.entries(spec.required).filter(([name]) => !given.has(name));
  return {
    ...table,
    columns: [
      ...table.columns.map((column) => ofKind(column, kinds[column.name])),
      ...missing.map(([name, kind]) => emptyColumn(name, kind, table.n_rows)),
    ],
  };
}

/** The answer with everything its question requires: tables not given are empty, numbers unknown. */
export function complete({ tables, scalars }: AnyQuestion, payload: Payload): Payload {
  const unknown = (spec: ScalarSpec): Scalar => ({ value: null, unit: '', title: spec.name, note: '' });
  const required = Object.values(scalars).filter((spec) => !spec.isOptional);
  const all = Object.values(tables).map((spec) => [
    spec.name,
    completeTable(spec, payload.tables[spec.name] ?? tableOf({})),
  ]);
  return {
    ...payload,
    tables: Object.fromEntries(all) as Payload['tables'],
    scalars: {
      ...Object.fromEntries(required.map((spec) => [spec.name, unknown(spec)])),
      ...payload.scalars,
    },
  };
}

/** The answer to a question from some columns of its tables and some of its numbers. */
export function answerOf(
  question: AnyQuestion,
  tables: Record<string, Record<string, Cells>> = {},
  scalars: Payload['scalars'] = {},
): Payload {
  const made = Object.entries(tables).map(([name, columns]) => [name, tableOf(columns)]);
  return complete(
    question,
    payloadOf({
      tables: Object.fromEntries(made) as Payload['tables'],
      scalars,
      tiles: Object.keys(scalars),
    }),
  );
}
