/**
 * What a tool without a view of its own shows for each table: its chart, and the state of its table. Pure.
 */
import { numberAt, textAt } from '../api/table';
import type { Column, NumberColumn, Table, TextColumn } from '../api/types';
import { paletteToken } from '../base/color';
import type { StepSeries } from '../widgets/step_chart';
import type { Donut } from './donuts';

type Params = Readonly<Record<string, string>>;

/** The page's parameters that belong to one table: `ops.sort` is `sort` of the table `ops`. */
export function paramsOf(table: string, params: Params): Record<string, string> {
  const prefix = `${table}.`;
  return Object.fromEntries(
    Object.entries(params)
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), value]),
  );
}

/** The reverse of `paramsOf`, for a change. */
export function changeOf(
  table: string,
  change: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(change).map(([name, value]) => [`${table}.${name}`, value]));
}

const isText = (column: Column): column is TextColumn => column.kind === 'text';
const isNumber = (column: Column): column is NumberColumn => column.kind === 'number';

/** Names of the first text column by the first number column, as shares of its sum; null: nothing to draw. */
export function donutOfTable(name: string, { title, note, columns, n_rows: nRows }: Table): Donut | null {
  const [names, sizes] = [columns.find(isText), columns.find(isNumber)];
  if (!names || !sizes) return null;
  const rows = Array.from({ length: nRows }, (_, row) => ({
    name: textAt(names, row) ?? '',
    size: numberAt(sizes, row) ?? 0,
  })).filter(({ size }) => size > 0);
  const whole = rows.reduce((sum, { size }) => sum + size, 0);
  if (!whole) return null;
  const slices = rows.map((row, i) => ({
    name: row.name,
    title: row.name,
    label: row.name,
    token: paletteToken(i),
    timePs: sizes.unit === 'ps' ? row.size : null,
    fraction: row.size / whole,
  }));
  return { name, title, note, timeName: sizes.title, slices };
}

/** Every column in the unit of the first number column, stacked over the first text column; null: none. */
export function seriesOfTable({
  columns,
  n_rows: nRows,
}: Table): { names: string[]; series: StepSeries[] } | null {
  const names = columns.find(isText);
  const first = columns.find(isNumber);
  if (!names || !first || !nRows) return null;
  const rows = Array.from({ length: nRows }, (_, row) => row);
  const series = columns
    .filter(isNumber)
    .filter(({ unit }) => unit === first.unit)
    .map((column, i) => ({
      name: column.name,
      title: column.title,
      token: paletteToken(i),
      values: rows.map((row) => numberAt(column, row)),
    }));
  return { names: rows.map((row) => textAt(names, row) ?? String(row)), series };
}
