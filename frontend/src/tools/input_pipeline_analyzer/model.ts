/**
 * Input pipeline: the payload's scalars and tables become tiles, the share of waiting of each step, and
 * advice per category. Pure.
 */
import { numberAt, numberColumn, numberOf, rowsOf, scalarNumber } from '../../api/table';
import type { Payload, Table } from '../../api/types';
import { categoryToken } from '../../base/color';
import { format, plural } from '../../base/units';
import type { TileProps } from '../../widgets/summary';
import type { StepShare } from '../../widgets/step_chart';
import { spreadText, valuesOf } from '../steps';

/** In the order of the tiles; what is spread over steps stands in the note of its average. */
const TILES = [
  'input_fraction',
  'waiting_avg_ps',
  'step_time_avg_ps',
  'host_input_ps',
  'host_enqueue_fraction',
  'output_fraction',
  'n_steps',
];
/** Left out where unknown: most runs have no such thing. */
const ONLY_WHERE_KNOWN = new Set(['host_enqueue_fraction']);
const MAX_TILES = 6;

function spreadOf(payload: Payload, names: [string, string, string], unit: string): string {
  const [sd, min, max] = names.map((name) => scalarNumber(payload, name)) as [
    number | null,
    number | null,
    number | null,
  ];
  return spreadText(sd, min, max, unit);
}

/** How much the share of waiting varies over the steps. */
export function waitingSpread(payload: Payload): string {
  return spreadOf(payload, ['input_fraction_sd', 'input_fraction_min', 'input_fraction_max'], 'fraction');
}

function noteOf(payload: Payload, name: string): string {
  if (name === 'input_fraction') return waitingSpread(payload);
  if (name === 'step_time_avg_ps')
    return spreadOf(payload, ['step_time_sd_ps', 'step_time_min_ps', 'step_time_max_ps'], 'ps');
  return '';
}

/** None where nothing but the number of steps is known: the verdict says why. */
export function tilesOf(payload: Payload): TileProps[] {
  const tiles = TILES.flatMap((name) => {
    const scalar = payload.scalars[name];
    if (!scalar || (scalar.value === null && ONLY_WHERE_KNOWN.has(name))) return [];
    const note = [scalar.note, noteOf(payload, name)].filter(Boolean).join(' · ');
    return [{ title: scalar.title, value: scalar.value, unit: scalar.unit, note }];
  }).slice(0, MAX_TILES);
  return tiles.some(({ value, unit }) => value !== null && unit !== 'count') ? tiles : [];
}

/** The share of waiting of each step; on several cores the band across them, and who waits longest. */
export function shareOf(steps: Table): StepShare | undefined {
  const values = valuesOf(steps, 'input_fraction');
  if (!values.some((value) => value !== null)) return undefined;
  const [low, high] = [valuesOf(steps, 'input_fraction_min'), valuesOf(steps, 'input_fraction_max')];
  const isSpread = low.some((end, i) => end !== null && end !== high[i]);
  const slowest = rowsOf(steps).map((row) =>
    typeof row['input_core'] === 'string' ? row['input_core'] : null,
  );
  return {
    title: 'Waiting for input',
    token: categoryToken('input'),
    values,
    ...(isSpread ? { band: { title: 'Across cores', low, high } } : {}),
    ...(slowest.some(Boolean) ? { who: { title: 'Waits longest', names: slowest } } : {}),
  };
}

/** Beside the chart's title: how many steps, and what the line and the band below the bars are. */
export function chartNote(nSteps: number, share: StepShare | undefined): string {
  const band = share?.band ? ', the band spans the cores' : '';
  return `${plural(nSteps, 'step')}${share ? ` · line: share of the step spent waiting for input${band}` : ''}`;
}

export interface SparseCorePart {
  name: string;
  value: string;
}

/** Averages of what the SparseCores did beside the steps; none where the trace has no SparseCore. */
export function sparseCoreOf(steps: Table | undefined): SparseCorePart[] {
  return ['sc_compute_ps', 'sc_infeed_ps', 'sc_outfeed_ps', 'sc_idle_ps'].flatMap((name) => {
    const column = numberColumn(steps, name);
    if (!column || !steps) return [];
    const known = valuesOf(steps, name).filter((value) => value !== null);
    const average = known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
    return [{ name: column.title, value: `${format(average, 'ps')} per step` }];
  });
}

export interface Advice {
  category: string;
  text: string;
  tool: string;
}

export function adviceOf(table: Table | undefined): Advice[] {
  return rowsOf(table).map((row) => ({
    category: String(row['category'] ?? ''),
    text: String(row['text'] ?? ''),
    tool: String(row['tool'] ?? ''),
  }));
}

/** The colour of each category's title, of the host's five and of the step's. */
export function categoryTokens(payload: Payload): Map<string, string> {
  const tokens = new Map<string, string>();
  for (const row of [...rowsOf(payload.tables['breakdown']), ...rowsOf(payload.tables['host_categories'])]) {
    tokens.set(String(row['category'] ?? ''), categoryToken(String(row['color'] ?? '')));
  }
  return tokens;
}

/** Whether the host did anything that counts as input. */
export function hasInputOps(payload: Payload): boolean {
  const times = numberColumn(payload.tables['host_categories'], 'time_ps');
  const total = times
    ? Array.from(
        { length: payload.tables['host_categories']?.n_rows ?? 0 },
        (_, row) => numberAt(times, row) ?? 0,
      )
    : [];
  return (payload.tables['input_ops']?.n_rows ?? 0) > 0 || total.some((time) => numberOf(time) !== 0);
}
