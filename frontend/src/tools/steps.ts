/**
 * A payload's table of steps becomes the series of the step chart: the same in every tool that shows steps.
 * Pure.
 */
import { numberAt, numberColumn, numberOf, rowsOf, textAt, textColumn } from '../api/table';
import type { Table } from '../api/types';
import { categoryToken } from '../base/color';
import { format } from '../base/units';
import type { StepSeries } from '../widgets/step_chart';

/**
 * Columns of `steps` with the category whose colour they have, in the order in which they are stacked, from
 * below.
 */
const PARTS: Record<string, string> = {
  device_compute_ps: 'compute',
  device_collectives_ps: 'collective',
  device_to_device_ps: 'd2d',
  host_compute_ps: 'host',
  host_python_ps: 'python',
  host_wait_ps: 'wait',
  kernel_launch_ps: 'launch',
  compilation_ps: 'compile',
  output_ps: 'output',
  input_ps: 'input',
  other_ps: 'other',
};
const PART_ORDER = Object.keys(PARTS);

/** The values of a column; none where there is no such column. */
function valuesOf(table: Table | undefined, name: string): (number | null)[] {
  const column = numberColumn(table, name);
  return table && column ? Array.from({ length: table.n_rows }, (_, row) => numberAt(column, row)) : [];
}

interface Layer {
  name: string;
  title: string;
  color: string;
}

/** What to stack, from below: what the breakdown names, else the columns that we know. */
function layersOf(steps: Table, breakdown: Table | undefined): Layer[] {
  if (breakdown && textColumn(breakdown, 'column')) {
    return rowsOf(breakdown).map((row) => ({
      name: String(row['column'] ?? ''),
      title: String(row['category'] ?? ''),
      color: String(row['color'] ?? ''),
    }));
  }
  return PART_ORDER.map((name) => ({
    name,
    title: numberColumn(steps, name)?.title ?? name,
    color: PARTS[name] ?? '',
  }));
}

/** The parts of each step that are not zero everywhere. */
export function seriesOf(steps: Table | undefined, breakdown?: Table): StepSeries[] {
  if (!steps) return [];
  return layersOf(steps, breakdown).flatMap(({ name, title, color }) => {
    const values = valuesOf(steps, name);
    return values.some((value) => value) ? [{ name, title, token: categoryToken(color), values }] : [];
  });
}

export interface Part {
  title: string;
  token: string;
  avgPs: number | null;
  sdPs: number | null;
  fraction: number;
  meaning: string;
}

export interface Breakdown {
  parts: Part[];
  /** Names of those that took no time. */
  absent: string[];
}

/** The parts that occur, largest first, and the names of those that do not. */
export function breakdownOf(table: Table | undefined): Breakdown {
  const all = (table ? rowsOf(table) : []).map((row) => ({
    title: String(row['category'] ?? 'Other'),
    token: categoryToken(String(row['color'] ?? '')),
    avgPs: numberOf(row['avg_ps'] ?? row['time_ps']),
    sdPs: numberOf(row['sd_ps']),
    fraction: numberOf(row['fraction']) ?? 0,
    meaning: String(row['meaning'] ?? ''),
  }));
  const parts = all.filter((part) => part.fraction > 0 || (part.avgPs ?? 0) > 0);
  return {
    parts: parts.sort((a, b) => b.fraction - a.fraction),
    absent: all.filter((part) => !parts.includes(part)).map((part) => part.title),
  };
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

/** The row of the step with that name, else of the first with that number; -1: there is none. */
export function stepRow(names: readonly string[], step: string | undefined): number {
  if (!step) return -1;
  const row = names.indexOf(step);
  return row >= 0 ? row : names.findIndex((name) => name.slice(name.lastIndexOf(' ') + 1) === step);
}

/** "Step train 41". */
export function stepTitle(name: string): string {
  return /^step/i.test(name) ? name : `Step ${name}`;
}

/** "± 3 % · 38 % to 51 %": how far steps are from the average; empty where they are all alike. */
export function spreadText(sd: number | null, min: number | null, max: number | null, unit: string): string {
  if (min !== null && min === max) return '';
  const range = min === null || max === null ? '' : `${format(min, unit)} to ${format(max, unit)}`;
  return [sd === null ? '' : `± ${format(sd, unit)}`, range].filter(Boolean).join(' · ');
}
