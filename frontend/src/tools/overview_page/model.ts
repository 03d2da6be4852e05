/** Overview: the payload's scalars and tables become tiles, the parts of a step, and lists of facts. Pure. */
import { numberAt, numberColumn, rowOf, scalarNumber, textAt, textColumn } from '../../api/table';
import type { Payload, Table } from '../../api/types';
import { categoryToken } from '../../base/color';
import { format } from '../../base/units';

const MAX_TILES = 6;
/** Scalars told within another tile. */
const NOT_TILES = new Set(['step_time_sd_ps', 'step_time_min_ps', 'step_time_max_ps']);

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

export interface TileModel {
  title: string;
  value: number | boolean | null;
  unit: string;
  note: string;
}

/** "± 0.6 ms · 11.2 ms to 15.8 ms": how far steps are from the average. */
function spread(payload: Payload): string {
  const [sd, min, max] = ['sd', 'min', 'max'].map((name) => scalarNumber(payload, `step_time_${name}_ps`)) as [number | null, number | null, number | null];
  const parts = [sd === null ? '' : `± ${format(sd, 'ps')}`, min === null || max === null ? '' : `${format(min, 'ps')} to ${format(max, 'ps')}`];
  return parts.filter(Boolean).join(' · ');
}

/** At most six: the step time first, then the payload's order. */
export function tilesOf(payload: Payload): TileModel[] {
  const names = Object.keys(payload.scalars).filter((name) => !NOT_TILES.has(name));
  const ordered = ['step_time_avg_ps', ...names.filter((name) => name !== 'step_time_avg_ps')];
  return ordered
    .flatMap((name) => {
      const scalar = payload.scalars[name];
      if (!scalar) return [];
      const note = name === 'step_time_avg_ps' ? [scalar.note, spread(payload)].filter(Boolean).join(' · ') : scalar.note;
      return [{ title: scalar.title, value: scalar.value, unit: scalar.unit, note }];
    })
    .slice(0, MAX_TILES);
}

export interface Series {
  name: string;
  title: string;
  token: string;
  values: (number | null)[];
}

/** The parts of each step that are not zero everywhere. */
export function seriesOf(steps: Table | undefined): Series[] {
  if (!steps) return [];
  return PART_ORDER.flatMap((name) => {
    const column = numberColumn(steps, name);
    if (!column) return [];
    const values = Array.from({ length: steps.n_rows }, (_, row) => numberAt(column, row));
    return values.some((value) => value) ? [{ name, title: column.title, token: categoryToken(PARTS[name] ?? ''), values }] : [];
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

/** "train 23", "train 24" … as the axis "train" with 23, 24 …: the words that all names begin with, once. */
export function stepAxis(names: readonly string[]): { name: string; labels: string[] } {
  const word = /^(.*\D)\s+\d+$/.exec(names[0] ?? '')?.[1] ?? '';
  const isShared = word !== '' && names.every((name) => name.startsWith(`${word} `) && /^\d+$/.test(name.slice(word.length).trim()));
  return isShared ? { name: word, labels: names.map((name) => name.slice(word.length).trim()) } : { name: 'step', labels: [...names] };
}

export interface Part {
  title: string;
  token: string;
  avgPs: number | null;
  sdPs: number | null;
  fraction: number;
}

function partsOf(breakdown: Table): Part[] {
  return Array.from({ length: breakdown.n_rows }, (_, row) => {
    const cells = rowOf(breakdown, row);
    const number = (name: string): number | null => (typeof cells[name] === 'number' ? cells[name] : null);
    return {
      title: String(cells['category'] ?? 'Other'),
      token: categoryToken(String(cells['color'] ?? '')),
      avgPs: number('avg_ps'),
      sdPs: number('sd_ps'),
      fraction: number('fraction') ?? 0,
    };
  });
}

/** The parts that occur, largest first, and the names of those that do not. */
export function breakdownOf(breakdown: Table | undefined): { parts: Part[]; absent: string[] } {
  const all = breakdown ? partsOf(breakdown) : [];
  const parts = all.filter((part) => part.fraction > 0 || (part.avgPs ?? 0) > 0);
  return { parts: parts.sort((a, b) => b.fraction - a.fraction), absent: all.filter((part) => !parts.includes(part)).map((part) => part.title) };
}

export interface Fact {
  name: string;
  value: string | null;
}

export function factsOf(environment: Table | undefined): Fact[] {
  if (!environment) return [];
  return Array.from({ length: environment.n_rows }, (_, row) => {
    const { name, value } = rowOf(environment, row);
    return { name: String(name ?? ''), value: value === null || value === undefined || value === '' ? null : String(value) };
  });
}

export interface Recommendation {
  kind: string;
  text: string;
  tool: string;
}

export function recommendationsOf(table: Table | undefined): Recommendation[] {
  if (!table) return [];
  return Array.from({ length: table.n_rows }, (_, row) => {
    const { kind, text, tool } = rowOf(table, row);
    return { kind: String(kind ?? ''), text: String(text ?? ''), tool: String(tool ?? '') };
  });
}

/** The zoom "12..40" (first and last row of `steps`) as URL text; null: not one, or not within the steps. */
export function parseZoom(text: string | undefined, nSteps: number): [number, number] | null {
  const parts = /^(\d+)\.\.(\d+)$/.exec(text ?? '');
  if (!parts) return null;
  const [first, last] = [Number(parts[1]), Math.min(Number(parts[2]), nSteps - 1)];
  return first < last ? [first, last] : null;
}
