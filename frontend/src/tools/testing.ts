/** Payloads and tables for tests, made from plain columns. */
import type { Kind, TableSpec } from '../api/declared';
import type { Column, Payload, Table } from '../api/types';

type Columns = Readonly<Record<string, Kind>>;
type Cells = readonly (number | string | boolean | null)[];
type CellsOf<K extends Kind> = K extends 'number'
  ? readonly (number | null)[]
  : K extends 'text'
    ? readonly (string | null)[]
    : readonly boolean[];

/** A table of a declaration. Required columns that are not given are there, and unknown in each row. */
export function tableFor<R extends Columns, O extends Columns>(
  spec: TableSpec<R, O>,
  cells: { readonly [N in keyof R]?: CellsOf<R[N]> } & { readonly [N in keyof O]?: CellsOf<O[N]> },
  title = '',
): Table {
  const given = new Map(Object.entries(cells) as [string, Cells][]);
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
    tables: {},
    diagnostics: [],
    ...parts,
  };
}
