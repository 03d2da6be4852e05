/**
 * Input pipeline: the payload's scalars and tables become tiles, the share of input wait of each step, and
 * advice per category. Pure.
 */
import { readNumber, readTable, readTiles, type ScalarSpec, type TileScalar } from '../../api/declared';
import { INPUT_PIPELINE_ANALYZER } from '../../api/tables/input_pipeline_analyzer';
import { cellAt } from '../../api/table';
import type { Payload, Table } from '../../api/types';
import { categoryToken } from '../../base/color';
import { format, plural } from '../../base/units';
import type { StepShare } from '../../widgets/step_chart';
import { spreadText } from '../steps';

const { tables: TABLES, scalars: SCALARS } = INPUT_PIPELINE_ANALYZER.page;

function spreadOf(
  payload: Payload,
  specs: readonly [ScalarSpec, ScalarSpec, ScalarSpec],
  unit: string,
): string {
  const [sd, min, max] = specs;
  return spreadText(readNumber(payload, sd), readNumber(payload, min), readNumber(payload, max), unit);
}

/** The spread of the share of input wait over the steps. */
function waitingSpread(payload: Payload): string {
  const { input_fraction_sd, input_fraction_min, input_fraction_max } = SCALARS;
  return spreadOf(payload, [input_fraction_sd, input_fraction_min, input_fraction_max], 'fraction');
}

function noteOf(payload: Payload, name: string): string {
  if (name === SCALARS.input_fraction.name) return waitingSpread(payload);
  const { step_time_avg_ps, step_time_sd_ps, step_time_min_ps, step_time_max_ps } = SCALARS;
  if (name === step_time_avg_ps.name)
    return spreadOf(payload, [step_time_sd_ps, step_time_min_ps, step_time_max_ps], 'ps');
  return '';
}

/** The tiles; those of means have the spread over steps in their notes. */
export function tilesOf(payload: Payload): TileScalar[] {
  return readTiles(payload).map((tile) => ({
    ...tile,
    note: [tile.note, noteOf(payload, tile.name)].filter(Boolean).join(' · '),
  }));
}

/**
 * The share of input wait of each step; on several cores the band across them, and the core that waits
 * longest.
 */
export function shareOf(payload: Payload): StepShare | undefined {
  const steps = readTable(payload, TABLES.steps);
  const values = steps.column('input_fraction');
  if (!values.some((value) => value !== null)) return undefined;
  const [low, high] = [steps.column('input_fraction_min'), steps.column('input_fraction_max')];
  const isSpread = low.some((end, i) => end !== null && end !== high[i]);
  const core = steps.text('input_core');
  const slowest = Array.from({ length: steps.length }, (_, row) => core(row) || null);
  return {
    title: 'Waiting for input',
    token: categoryToken('input'),
    values,
    ...(isSpread ? { band: { title: 'Across cores', low, high } } : {}),
    ...(slowest.some(Boolean) ? { who: { title: 'Waits longest', names: slowest } } : {}),
  };
}

/** The note of the chart: number of steps, and the meaning of the line and the band below the bars. */
export function chartNote(nSteps: number, share: StepShare | undefined): string {
  const band = share?.band ? ', the band spans the cores' : '';
  return `${plural(nSteps, 'step')}${share ? ` · line: share of the step spent waiting for input${band}` : ''}`;
}

export interface SparseCorePart {
  name: string;
  value: string;
}

/**
 * Averages of the SparseCores' work, which runs in parallel with the steps; none where the trace has no
 * SparseCore.
 */
export function sparseCoreOf(payload: Payload): SparseCorePart[] {
  const steps = readTable(payload, TABLES.steps);
  const names = ['sc_compute_ps', 'sc_infeed_ps', 'sc_outfeed_ps', 'sc_idle_ps'] as const;
  return names
    .filter((name) => steps.has(name))
    .map((name) => {
      const values = steps.column(name).filter((value) => value !== null);
      const average = values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
      return { name: steps.title(name), value: `${format(average, 'ps')} per step` };
    });
}

export interface Advice {
  category: string;
  text: string;
  tool: string;
}

export function adviceOf(payload: Payload): Advice[] {
  return readTable(payload, TABLES.advice)
    .all()
    .map(({ category, text, tool }) => ({ category, text, tool }));
}

/** The color of each category's title, of the host's five and of the step's. */
export function categoryTokens(payload: Payload): Map<string, string> {
  const rows = [
    ...readTable(payload, TABLES.breakdown).all(),
    ...readTable(payload, TABLES.host_categories).all(),
  ];
  return new Map(rows.map(({ category, color }) => [category, categoryToken(color)]));
}

/** Whether the host did any work that counts as input. */
export function hasInputOps(payload: Payload): boolean {
  const times = readTable(payload, TABLES.host_categories).column('time_ps');
  return readTable(payload, TABLES.input_ops).length > 0 || times.some((time) => time);
}

/** The numbers of the only host's data loader under their titles; the verdict names its iterator. */
export function loaderFacts({ columns }: Table): { name: string; value: string | null }[] {
  return columns
    .filter(({ name }) => name !== 'host' && name !== 'iterator')
    .map((column) => {
      const { title: name, unknown } = column;
      const value = cellAt(column, 0);
      if (value === null) return { name, value: unknown ? `unknown: ${unknown}` : null };
      return { name, value: typeof value === 'number' ? format(value, column.unit) : String(value) };
    });
}
