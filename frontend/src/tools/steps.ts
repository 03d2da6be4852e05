/** A payload's table of steps becomes the series of the step chart: the same in every tool that shows steps. Pure. */
import { numberAt, numberColumn, textAt, textColumn } from '../api/table';
import type { Table } from '../api/types';
import { categoryToken } from '../base/color';
import type { StepSeries } from '../widgets/step_chart';

/** Columns of `steps` with the category whose colour they have, in the order in which they are stacked, from below. */
const PARTS: Record<string, string> = {
  device_compute_ps: 'compute',
  device_collectives_ps: 'collective',
  device_to_device_ps: 'd2d',
  host_compute_ps: 'host',
  kernel_launch_ps: 'launch',
  compilation_ps: 'compile',
  output_ps: 'output',
  input_ps: 'input',
  other_ps: 'other',
};
const PART_ORDER = Object.keys(PARTS);

/** The values of a column; none where there is no such column. */
export function valuesOf(table: Table | undefined, name: string): (number | null)[] {
  const column = numberColumn(table, name);
  return table && column ? Array.from({ length: table.n_rows }, (_, row) => numberAt(column, row)) : [];
}

/** The parts of each step that are not zero everywhere. */
export function seriesOf(steps: Table | undefined): StepSeries[] {
  return PART_ORDER.flatMap((name) => {
    const values = valuesOf(steps, name);
    const title = numberColumn(steps, name)?.title ?? name;
    return values.some((value) => value) ? [{ name, title, token: categoryToken(PARTS[name] ?? ''), values }] : [];
  });
}

/** The number or name of each step, for the axis. */
export function stepNames(steps: Table): string[] {
  const numbers = numberColumn(steps, 'step');
  const names = textColumn(steps, 'step');
  return Array.from({ length: steps.n_rows }, (_, row) => {
    if (names) return textAt(names, row) ?? String(row);
    return String(numbers ? (numberAt(numbers, row) ?? row) : row);
  });
}
