/** The numbers of an answer with their definitions, in the order of the page. */
import type { Column, Payload, Scalar } from '../../api/types';

export interface Defined {
  title: string;
  unit: string;
  description: string;
  formula: string;
}

export interface DefinedGroup {
  /** The table's title; empty: the numbers at the top of the page. */
  title: string;
  description: string;
  numbers: Defined[];
}

const UNITS: Readonly<Record<string, string>> = {
  ps: 'time',
  fraction: '%',
  bytes: 'bytes',
  flops_per_s: 'FLOP/s',
  bytes_per_s: 'B/s',
  flops_per_byte: 'FLOP/B',
  count: 'number',
};

function definedOf({ title, unit, description = '', formula = '' }: Scalar | Column): Defined {
  return { title, unit: UNITS[unit] ?? '', description, formula };
}

/** Ids are for links between tables and stand nowhere on the page. */
function isShown(number: Scalar | Column): boolean {
  return number.unit !== 'id' && Boolean(number.description);
}

/** Tables without numbers are left out, and so is a table whose title and columns occurred before. */
export function definitionsOf(payload: Payload): DefinedGroup[] {
  const top = {
    title: '',
    description: '',
    numbers: Object.values(payload.scalars).filter(isShown).map(definedOf),
  };
  const tables = Object.values(payload.tables)
    .filter(({ n_rows }) => n_rows > 0)
    .map((table) => ({
      title: table.title,
      description: table.description ?? '',
      numbers: table.columns.filter((column) => column.kind !== 'text' && isShown(column)).map(definedOf),
    }));
  const seen = new Set<string>();
  return [top, ...tables].filter((group) => {
    const key = JSON.stringify(group);
    const isNew = !seen.has(key) && group.numbers.length > 0;
    seen.add(key);
    return isNew;
  });
}
