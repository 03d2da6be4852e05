/** Payloads and tables for tests, made from plain columns. */
import type { Payload, Table } from '../api/types';

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
