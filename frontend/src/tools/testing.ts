/** Payloads and tables for tests, made from plain columns. */
import type { Kind, ScalarSpec, TableSpec } from '../api/declared';
import type { Payload, Scalar, Table } from '../api/types';

type Cells = (number | string | boolean | null)[];
type AnySpec = TableSpec<Readonly<Record<string, Kind>>, Readonly<Record<string, Kind>>>;

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

const UNKNOWN: Record<Kind, string | number | boolean | null> = { number: null, text: '', bool: false };

/** A table of a declaration from some of its columns: the other required ones are unknown. */
export function filled(spec: AnySpec, columns: Record<string, Cells>): Table {
  const n = Object.values(columns)[0]?.length ?? 0;
  const missing = Object.entries(spec.required).filter(([name]) => !(name in columns));
  const all = {
    ...columns,
    ...Object.fromEntries(missing.map(([name, kind]) => [name, Array<Cells[0]>(n).fill(UNKNOWN[kind])])),
  };
  const kinds = { ...spec.optional, ...spec.required };
  const made = tableOf(all).columns.map((column) =>
    kinds[column.name] === 'text'
      ? {
          name: column.name,
          title: column.name,
          unit: '' as const,
          kind: 'text' as const,
          strings: (all[column.name] ?? []).map((cell) => String(cell ?? '')),
          codes: (all[column.name] ?? []).map((cell, i) => (cell === null ? -1 : i)),
        }
      : kinds[column.name] === 'bool'
        ? {
            name: column.name,
            title: column.name,
            unit: '' as const,
            kind: 'bool' as const,
            values: (all[column.name] ?? []).map(Boolean),
          }
        : column,
  );
  return { title: '', note: '', n_rows: n, columns: made };
}

/** The answer to a question from some of its tables and numbers: the other required ones are empty or unknown. */
export function answerOf(
  question: { tables: Record<string, AnySpec>; scalars: Record<string, ScalarSpec> },
  tables: Record<string, Record<string, Cells>> = {},
  scalars: Payload['scalars'] = {},
): Payload {
  const unknown = (spec: ScalarSpec): Scalar => ({ value: null, unit: '', title: spec.name, note: '' });
  const specs = Object.values(question.tables);
  return payloadOf({
    tables: Object.fromEntries(specs.map((spec) => [spec.name, filled(spec, tables[spec.name] ?? {})])),
    scalars: {
      ...Object.fromEntries(
        Object.values(question.scalars)
          .filter((spec) => !spec.isOptional)
          .map((spec) => [spec.name, unknown(spec)]),
      ),
      ...scalars,
    },
  });
}
