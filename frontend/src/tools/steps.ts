/**
 * A payload's table of steps becomes the series of the step chart: the same in every tool that shows steps.
 * Pure.
 */
import { categoryToken } from '../base/color';
import { format } from '../base/units';
import type { StepSeries } from '../widgets/step_chart';

/** Rows of a declared table of steps (or cores) with a column per part of their time. */
interface PartedRows {
  readonly length: number;
  numberNamed(name: string): (row: number) => number | null;
}

/** Rows of a declared table of steps. */
export interface StepRows extends PartedRows {
  readonly table: { readonly title: string; readonly note: string };
  text(name: 'step'): (row: number) => string;
}

/** A part of a step: its column in the table of steps, its title, and the category that gives its color. */
export interface StepPart {
  readonly column: string;
  readonly category: string;
  readonly color: string;
}

/**
 * The parts as layers of the chart, stacked in their order from below; those that are zero everywhere are
 * left out.
 */
export function seriesOf(rows: PartedRows, parts: readonly StepPart[]): StepSeries[] {
  return parts.flatMap(({ column, category, color }) => {
    const values = Array.from({ length: rows.length }, (_, row) => row).map(rows.numberNamed(column));
    return values.some((value) => value)
      ? [{ name: column, title: category, token: categoryToken(color), values }]
      : [];
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

/** A row of a declared table of categories: of steps with average and deviation, else with a total time. */
type CategoryRow = {
  readonly category: string;
  readonly color: string;
  readonly fraction: number | null;
  readonly meaning?: string;
} & ({ readonly avg_ps: number | null; readonly sd_ps: number | null } | { readonly time_ps: number | null });

/** The parts that occur, largest first, and the names of those that do not. */
export function breakdownOf(rows: readonly CategoryRow[]): Breakdown {
  const all = rows.map((row) => ({
    title: row.category || 'Other',
    token: categoryToken(row.color),
    avgPs: 'avg_ps' in row ? row.avg_ps : row.time_ps,
    sdPs: 'sd_ps' in row ? row.sd_ps : null,
    fraction: row.fraction ?? 0,
    meaning: row.meaning ?? '',
  }));
  const parts = all.filter((part) => part.fraction > 0 || (part.avgPs ?? 0) > 0);
  return {
    parts: parts.sort((a, b) => b.fraction - a.fraction),
    absent: all.filter((part) => !parts.includes(part)).map((part) => part.title),
  };
}

/** The name of each step, for the axis. */
export function stepNames(steps: StepRows): string[] {
  const name = steps.text('step');
  return Array.from({ length: steps.length }, (_, row) => name(row) || String(row));
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

/** "± 3% · 38% to 51%": how far steps are from the average; empty where they are all alike. */
export function spreadText(sd: number | null, min: number | null, max: number | null, unit: string): string {
  if (min !== null && min === max) return '';
  const range = min === null || max === null ? '' : `${format(min, unit)} to ${format(max, unit)}`;
  return [sd === null ? '' : `± ${format(sd, unit)}`, range].filter(Boolean).join(' · ');
}
