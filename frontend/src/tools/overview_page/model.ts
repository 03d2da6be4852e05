/** Overview: the payload's scalars and tables become tiles, the parts of a step, and lists of facts. Pure. */
import { readNumber, readTable } from '../../api/declared';
import { OVERVIEW_PAGE } from '../../api/tables/overview_page';
import type { Payload } from '../../api/types';
import { spreadText, type StepPart } from '../steps';

const { tables: TABLES, scalars: SCALARS } = OVERVIEW_PAGE.page;

const MAX_TILES = 6;
/** Scalars shown within another tile. */
const SPREAD = [SCALARS.step_time_sd_ps, SCALARS.step_time_min_ps, SCALARS.step_time_max_ps] as const;
const NOT_TILES = new Set<string>(SPREAD.map(({ name }) => name));
const { name: STEP_TIME } = SCALARS.step_time_avg_ps;

export interface TileModel {
  title: string;
  value: number | boolean | null;
  unit: string;
  note: string;
}

/** "± 0.6 ms · 11.2 ms to 15.8 ms": the spread of steps around the average. */
function spread(payload: Payload): string {
  const [sd, min, max] = SPREAD;
  return spreadText(readNumber(payload, sd), readNumber(payload, min), readNumber(payload, max), 'ps');
}

/**
 * At most six: the step time first, then the payload's order. One tile represents all tiles without a value.
 */
export function tilesOf(payload: Payload): TileModel[] {
  const names = Object.keys(payload.scalars).filter((name) => !NOT_TILES.has(name));
  const ordered = [STEP_TIME, ...names.filter((name) => name !== STEP_TIME)];
  return ordered
    .flatMap((name) => {
      const scalar = payload.scalars[name];
      if (!scalar) return [];
      const note =
        name === STEP_TIME ? [scalar.note, spread(payload)].filter(Boolean).join(' · ') : scalar.note;
      return [{ ...scalar, note }];
    })
    .filter((tile, i, tiles) => tile.value !== null || i === tiles.findIndex(({ value }) => value === null))
    .slice(0, MAX_TILES);
}

/** The category of each column of step parts, which gives its color; stacked in this order, from below. */
const PARTS: readonly (readonly [keyof typeof TABLES.steps.optional, string])[] = [
  ['device_compute_ps', 'compute'],
  ['device_collectives_ps', 'collective'],
  ['device_to_device_ps', 'd2d'],
  ['host_compute_ps', 'host'],
  ['host_python_ps', 'python'],
  ['host_wait_ps', 'wait'],
  ['kernel_launch_ps', 'launch'],
  ['compilation_ps', 'compile'],
  ['output_ps', 'output'],
  ['input_ps', 'input'],
  ['other_ps', 'other'],
];

/** The parts of a step that the answer has, as layers of the chart. */
export function stepParts(payload: Payload): StepPart[] {
  const steps = readTable(payload, TABLES.steps);
  return PARTS.filter(([column]) => steps.has(column)).map(([column, color]) => ({
    column,
    category: steps.title(column),
    color,
  }));
}

export interface Fact {
  name: string;
  value: string | null;
}

export function factsOf(payload: Payload): Fact[] {
  return readTable(payload, TABLES.environment)
    .all()
    .map(({ name, value }) => ({ name, value: value || null }));
}

export interface StepChoice {
  name: string;
  timePs: number | null;
}

const LISTED_STEPS = 12;

/** The slowest steps, slowest first; and the chosen one, if it is not among them. */
export function stepChoices(payload: Payload, chosen: number): StepChoice[] {
  const all = readTable(payload, TABLES.steps)
    .all()
    .map(({ step, step_time_ps }, row) => ({ name: step || String(row), row, timePs: step_time_ps }));
  const slowest = [...all].sort((a, b) => (b.timePs ?? 0) - (a.timePs ?? 0)).slice(0, LISTED_STEPS);
  const more = all.filter(({ row }) => row === chosen && !slowest.some((one) => one.row === row));
  return [...slowest, ...more].map(({ name, timePs }) => ({ name, timePs }));
}

export interface Recommendation {
  kind: string;
  text: string;
  tool: string;
}

export function recommendationsOf(payload: Payload): Recommendation[] {
  return readTable(payload, TABLES.recommendations)
    .all()
    .map(({ kind, text, tool }) => ({ kind, text, tool }));
}
