/** Samples of a monitored job as tiles, series over time and a table. Pure. */
import type { CaptureOption, MonitorAnswer, MonitorRequest, MonitorSample } from '../../api/capture';
import { paletteToken } from '../../base/color';
import { format, formatRange, plural } from '../../base/units';
import type { TileProps } from '../../widgets/summary';
import type { TableColumn, TableData } from '../../widgets/table/model';
import type { TimeSeries } from '../../widgets/time_chart';
import {
  checkOptions,
  checkTargets,
  optionValues,
  restoreTargets,
  targetsRequest,
  type FieldErrors,
  type TargetForm,
} from '../capture/model';

export interface MonitorForm extends TargetForm {
  options: Readonly<Record<string, string>>;
}

const INTERVAL = 'interval_ms';

type Params = Readonly<Record<string, string>>;

/** From the link if it names a job, else from browser storage. */
export function restoreMonitor(
  params: Params,
  remembered: unknown,
  defaultTargets: string,
  offered: readonly CaptureOption[],
): MonitorForm {
  const isLinked = Boolean(params['targets'] || params['tpu']);
  const source = isLinked ? { ...params, mode: params['tpu'] ? 'tpu' : 'address' } : remembered;
  const storedOptions =
    typeof remembered === 'object' && remembered ? (remembered as { options?: unknown }).options : null;
  const old =
    typeof storedOptions === 'object' && storedOptions ? (storedOptions as Record<string, unknown>) : {};
  const options: Record<string, string> = {};
  for (const { name } of offered) {
    const text = params[name] ?? old[name];
    if (typeof text === 'string') options[name] = text;
  }
  return { ...restoreTargets(source, defaultTargets), options };
}

/** The link to this form. */
export function monitorParams(form: MonitorForm): Record<string, string> {
  const fields = { ...targetsRequest(form), ...form.options };
  return Object.fromEntries(
    Object.entries(fields).filter((pair): pair is [string, string] => Boolean(pair[1])),
  );
}

export function checkMonitor(form: MonitorForm, offered: readonly CaptureOption[]): FieldErrors {
  return { ...checkTargets(form), ...checkOptions(form.options, offered) };
}

export function monitorRequest(form: MonitorForm, offered: readonly CaptureOption[]): MonitorRequest {
  const { [INTERVAL]: interval, ...options } = optionValues(form.options, offered);
  return {
    ...targetsRequest(form),
    interval_ms: Number(interval),
    ...(Object.keys(options).length ? { options } : {}),
  };
}

const COLLATOR = new Intl.Collator('en', { numeric: true });

/** Sorted by name: targets answer in a different order each time, but keep their colors. */
export function targetsOf(samples: readonly MonitorSample[]): string[] {
  return [...new Set(samples.map(({ target }) => target))].sort(COLLATOR.compare);
}

/** The newest sample of each target. */
function newestOf(samples: readonly MonitorSample[]): MonitorSample[] {
  const newest = new Map<string, MonitorSample>();
  for (const sample of samples) newest.set(sample.target, sample);
  return [...newest.values()];
}

type Measure = 'step_time_avg_ps' | 'device_idle_fraction' | 'input_fraction_avg' | 'matrix_unit_fraction';

interface Tile {
  measure: Measure;
  title: string;
  unit: string;
  /** The extreme among several targets: the largest value, or the smallest. */
  worst: 'largest' | 'smallest';
  note: (sample: MonitorSample) => string;
  unknown: string;
}

const TILES: readonly Tile[] = [
  {
    measure: 'step_time_avg_ps',
    title: 'Step time',
    unit: 'ps',
    worst: 'largest',
    note: (sample) =>
      [
        spanText(sample.step_time_min_ps, sample.step_time_max_ps, 'ps'),
        sample.n_steps === null ? '' : plural(sample.n_steps, 'step'),
      ]
        .filter(Boolean)
        .join(' · '),
    unknown: 'No step in the last sample',
  },
  {
    measure: 'input_fraction_avg',
    title: 'Waiting for input',
    unit: 'fraction',
    worst: 'largest',
    note: (sample) =>
      spanText(sample.input_fraction_min, sample.input_fraction_max, 'fraction') || 'share of step time',
    unknown: 'Needs step markers',
  },
  {
    measure: 'device_idle_fraction',
    title: 'Device idle',
    unit: 'fraction',
    worst: 'largest',
    note: () => 'share of the sampled time',
    unknown: 'Not reported by any TPU or GPU',
  },
  {
    measure: 'matrix_unit_fraction',
    title: 'Matrix unit',
    unit: 'fraction',
    worst: 'smallest',
    note: () => 'utilization',
    unknown: 'Reported by TPUs only',
  },
];

function spanText(low: number | null, high: number | null, unit: string): string {
  return low === null || high === null || low === high ? '' : formatRange(low, high, unit);
}

/** The sample in which a measure is worst; null: no sample has it. */
function worstOf(newest: readonly MonitorSample[], { measure, worst }: Tile): MonitorSample | null {
  const measured = newest.filter((sample) => sample[measure] !== null);
  const sign = worst === 'largest' ? 1 : -1;
  return measured.reduce<MonitorSample | null>(
    (extreme, sample) =>
      extreme && sign * (extreme[measure] ?? 0) >= sign * (sample[measure] ?? 0) ? extreme : sample,
    null,
  );
}

/** The newest values; of several targets the worst, which is named. */
export function tilesOf(samples: readonly MonitorSample[]): TileProps[] {
  const newest = newestOf(samples);
  return TILES.filter(
    ({ measure }) => measure !== 'matrix_unit_fraction' || samples.some((sample) => sample[measure] !== null),
  ).map((tile) => {
    const sample = worstOf(newest, tile);
    const targetNote = newest.length > 1 && sample ? sample.target : '';
    const note = sample ? [targetNote, tile.note(sample)].filter(Boolean).join(' · ') : tile.unknown;
    return { title: tile.title, value: sample?.[tile.measure] ?? null, unit: tile.unit, note };
  });
}

type Level = 'good' | 'warn' | 'bad' | 'unknown';

export interface Verdict {
  level: Level;
  text: string;
  details: string[];
}

function failedText(failed: readonly MonitorSample[]): string {
  const first = failed[0];
  if (!first) return '';
  const prefix = first.error.includes(first.target) ? '' : `${first.target}: `;
  return `${prefix}${first.error} ${first.remedy}`.trim();
}

function pluralTargets(n: number): string {
  return n > 1 ? 'The job' : 'The target';
}

/**
 * The verdict of the page: how fast steps are now and how much of them waits for input, or why that is
 * unknown.
 */
export function verdictOf(
  answer: Pick<MonitorAnswer, 'source' | 'state'> | null,
  samples: readonly MonitorSample[],
): Verdict {
  const newest = newestOf(samples);
  const failed = newest.filter(({ error }) => error);
  const details = answer && samples.length ? [sourceText(answer.source)] : [];
  if (failed.length && failed.length === newest.length) {
    const isBusy = failed.every(({ is_busy }) => is_busy);
    const text = isBusy
      ? `No numbers just now. ${failedText(failed)}`
      : `${pluralTargets(failed.length)} does not answer. ${failedText(failed.filter(({ is_busy }) => !is_busy))}`;
    return {
      level: isBusy ? 'warn' : 'bad',
      text,
      details: answer?.state === 'running' ? ['Retrying at each interval.'] : [],
    };
  }
  const why = failed.every(({ is_busy }) => is_busy) ? 'had no data just now' : 'could not be reached';
  if (failed.length)
    details.unshift(`${plural(failed.length, 'target')} of ${newest.length} ${why}. ${failedText(failed)}`);
  const slowest = worstOf(newest, TILES[0] as Tile);
  if (!slowest) return { level: 'unknown', text: idleText(newest), details };
  const waits = worstOf(newest, TILES[1] as Tile);
  const share = waits?.input_fraction_avg ?? null;
  const isOn = answer?.state === 'running';
  const words = isOn ? 'Current step time:' : 'Last step time:';
  const waiting =
    share === null ? '' : `; ${format(share, 'fraction')} of it ${isOn ? 'waits' : 'waited'} for input`;
  return {
    level: failed.length ? 'warn' : 'unknown',
    text: `${words} ${format(slowest.step_time_avg_ps, 'ps')}${waiting}.`,
    details,
  };
}

function idleText(newest: readonly MonitorSample[]): string {
  if (!newest.length) return 'Waiting for the first sample.';
  const idle = newest.every(
    (sample) => sample.device_idle_fraction !== null && sample.device_idle_fraction > 0.99,
  );
  return idle
    ? 'No steps: the device is idle.'
    : 'No steps in the last sample. Steps longer than the interval are missed: try a longer interval.';
}

function sourceText(source: MonitorAnswer['source']): string {
  return source === 'monitor_rpc'
    ? 'The job reports these numbers itself: its server answers the Monitor request.'
    : "The numbers come from short profiles, analyzed here, because the job's server does not answer the " +
        'Monitor request. Each costs the job as much as a capture of that length.';
}

function pointsOf(
  samples: readonly MonitorSample[],
  target: string,
  value: (sample: MonitorSample) => number | null,
): TimeSeries['points'] {
  return samples
    .filter((sample) => sample.target === target)
    .map((sample) => [sample.time_unix_ms, value(sample)]);
}

/** A line for each target; a single target has the color of the measure. */
export function seriesOf(
  samples: readonly MonitorSample[],
  measure: Measure,
  token: string,
  band?: { low: keyof MonitorSample; high: keyof MonitorSample },
): TimeSeries[] {
  const targets = targetsOf(samples);
  const numberAt = (name: keyof MonitorSample) => (sample: MonitorSample) =>
    typeof sample[name] === 'number' ? sample[name] : null;
  return targets.map((target, i) => ({
    name: target,
    token: targets.length > 1 ? paletteToken(i) : token,
    points: pointsOf(samples, target, numberAt(measure)),
    ...(band
      ? {
          low: pointsOf(samples, target, numberAt(band.low)),
          high: pointsOf(samples, target, numberAt(band.high)),
        }
      : {}),
  }));
}

const COLUMNS: readonly (Pick<TableColumn, 'title' | 'unit'> & {
  name: keyof MonitorSample;
  description?: string;
})[] = [
  { name: 'device_type', title: 'Device', unit: '' },
  { name: 'n_cores', title: 'Cores', unit: 'count' },
  { name: 'step_time_avg_ps', title: 'Step, average', unit: 'ps' },
  { name: 'step_time_min_ps', title: 'Least', unit: 'ps' },
  { name: 'step_time_max_ps', title: 'Most', unit: 'ps' },
  { name: 'n_steps', title: 'Steps', unit: 'count' },
  { name: 'input_fraction_avg', title: 'Waiting for input', unit: 'fraction' },
  { name: 'input_fraction_min', title: 'Input, least', unit: 'fraction' },
  { name: 'input_fraction_max', title: 'Input, most', unit: 'fraction' },
  { name: 'device_idle_fraction', title: 'Device idle', unit: 'fraction' },
  { name: 'matrix_unit_fraction', title: 'Matrix unit', unit: 'fraction' },
  { name: 'error', title: 'Problem', unit: '' },
];
const TEXTS: ReadonlySet<keyof MonitorSample> = new Set(['device_type', 'error']);
export const TIME_COLUMN = 'time_utc';

/** Newest first; columns without any value are left out. */
export function tableOf(samples: readonly MonitorSample[]): TableData {
  const sampleAt = (row: number): MonitorSample => samples[samples.length - 1 - row] as MonitorSample;
  const knownColumns = COLUMNS.filter(({ name }) =>
    samples.some((sample) => sample[name] !== null && sample[name] !== ''),
  );
  const columns: TableColumn[] = [
    {
      name: TIME_COLUMN,
      title: 'Time',
      unit: '',
      kind: 'text',
      cell: (row) => new Date(sampleAt(row).time_unix_ms).toISOString(),
    },
    { name: 'target', title: 'Target', unit: '', kind: 'text', cell: (row) => sampleAt(row).target },
    ...knownColumns.map(({ name, title, unit }): TableColumn => ({
      name,
      title,
      unit,
      kind: TEXTS.has(name) ? 'text' : 'number',
      cell: (row) => (sampleAt(row)[name] === '' ? null : sampleAt(row)[name]),
    })),
  ];
  return { columns, nRows: samples.length };
}

/** Wall-clock time in the browser's time zone. */
export function clockText(iso: string): string {
  return new Date(iso).toLocaleTimeString('en-GB');
}
