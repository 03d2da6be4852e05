/** Overview: the payload's scalars and tables become tiles, the parts of a step, and lists of facts. Pure. */
import { rowOf, scalarNumber } from '../../api/table';
import type { Payload, Table } from '../../api/types';
import { spreadText, stepNames, valuesOf } from '../steps';

const MAX_TILES = 6;
/** Scalars told within another tile. */
const NOT_TILES = new Set(['step_time_sd_ps', 'step_time_min_ps', 'step_time_max_ps']);

export interface TileModel {
  title: string;
  value: number | boolean | null;
  unit: string;
  note: string;
}

/** "± 0.6 ms · 11.2 ms to 15.8 ms": how far steps are from the average. */
function spread(payload: Payload): string {
  const [sd, min, max] = ['sd', 'min', 'max'].map((name) =>
    scalarNumber(payload, `step_time_${name}_ps`),
  ) as [number | null, number | null, number | null];
  return spreadText(sd, min, max, 'ps');
}

/**
 * At most six: the step time first, then the payload's order. Of tiles without a value one stands for all.
 */
export function tilesOf(payload: Payload): TileModel[] {
  const names = Object.keys(payload.scalars).filter((name) => !NOT_TILES.has(name));
  const ordered = ['step_time_avg_ps', ...names.filter((name) => name !== 'step_time_avg_ps')];
  return ordered
    .flatMap((name) => {
      const scalar = payload.scalars[name];
      if (!scalar) return [];
      const note =
        name === 'step_time_avg_ps'
          ? [scalar.note, spread(payload)].filter(Boolean).join(' · ')
          : scalar.note;
      return [{ title: scalar.title, value: scalar.value, unit: scalar.unit, note }];
    })
    .filter((tile, i, tiles) => tile.value !== null || i === tiles.findIndex(({ value }) => value === null))
    .slice(0, MAX_TILES);
}

export interface Fact {
  name: string;
  value: string | null;
}

export function factsOf(environment: Table | undefined): Fact[] {
  if (!environment) return [];
  return Array.from({ length: environment.n_rows }, (_, row) => {
    const { name, value } = rowOf(environment, row);
    return {
      name: String(name ?? ''),
      value: value === null || value === undefined || value === '' ? null : String(value),
    };
  });
}

export interface StepChoice {
  name: string;
  timePs: number | null;
}

const LISTED_STEPS = 12;

/** The slowest steps, slowest first; and the chosen one, if it is none of them. */
export function stepChoices(steps: Table, chosen: number): StepChoice[] {
  const times = valuesOf(steps, 'step_time_ps');
  const all = stepNames(steps).map((name, row) => ({ name, row, timePs: times[row] ?? null }));
  const slowest = [...all].sort((a, b) => (b.timePs ?? 0) - (a.timePs ?? 0)).slice(0, LISTED_STEPS);
  const more = all.filter(({ row }) => row === chosen && !slowest.some((one) => one.row === row));
  return [...slowest, ...more].map(({ name, timePs }) => ({ name, timePs }));
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
