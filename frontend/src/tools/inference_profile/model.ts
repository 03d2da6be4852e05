/** Requests: the parts of their time, the histogram's bars and marks, batch sizes as bars. Pure. */
import { readIfAny, readTable, type RowOf } from '../../api/declared';
import { INFERENCE_PROFILE } from '../../api/tables/inference_profile';
import type { Payload } from '../../api/types';
import { ticksOf } from '../../base/ticks';
import { format, plural } from '../../base/units';

export const TABLES = INFERENCE_PROFILE.page.tables;

export interface Side {
  /** The column of the times. */
  column: 'host_ps' | 'queue_ps' | 'transfer_ps' | 'device_ps' | 'wait_ps';
  title: string;
  token: string;
}

/** What a request's time is spent on, in the order of the bars. */
export const SIDES: readonly Side[] = [
  { column: 'host_ps', title: 'Host', token: '--c-host' },
  { column: 'queue_ps', title: 'Queue', token: '--c-input' },
  { column: 'transfer_ps', title: 'Transfer', token: '--c-output' },
  { column: 'device_ps', title: 'Device', token: '--c-compute' },
  { column: 'wait_ps', title: 'Wait', token: '--c-idle' },
];

/** Columns of the sides on which no request spends any time. */
export function idleSides(payload: Payload): string[] {
  const average = readTable(payload, TABLES.percentiles).all()[0];
  return average ? SIDES.map(({ column }) => column).filter((column) => !average[column]) : [];
}

type Times = Readonly<Record<Side['column'] | 'latency_ps', number | null>>;

export interface MixPart {
  token: string;
  /** Of the longest latency that is drawn. */
  fraction: number;
}

/** A request's parts as shares of the longest latency; the parts of no time are left out. */
export function mixOf(times: Times, longestPs: number): MixPart[] {
  if (!(longestPs > 0)) return [];
  return SIDES.map(({ column, token }) => ({ token, fraction: (times[column] ?? 0) / longestPs })).filter(
    ({ fraction }) => fraction > 0,
  );
}

/** The parts in words, for a tooltip. */
export function mixText(times: Times): string {
  return SIDES.filter(({ column }) => times[column])
    .map(({ column, title }) => `${title} ${format(times[column], 'ps')}`)
    .join(', ');
}

interface Bar {
  /** Shares of the chart's width and height. */
  left: number;
  width: number;
  height: number;
  tip: string;
}

interface Mark {
  name: string;
  text: string;
  left: number;
  /** Labels that would overlap are on different rows, 0 at the bottom. */
  row: number;
}

interface Tick {
  text: string;
  /** Share of the width or height. */
  place: number;
}

export interface HistogramDrawing {
  bars: Bar[];
  marks: Mark[];
  counts: Tick[];
  times: Tick[];
  /** In words: the width of a bin, and the scales. */
  note: string;
}

/** Counts from here on are drawn on a logarithmic scale, so that a single slow request stays visible. */
const LOG_FROM = 20;
/** A bar of one request has this share of a decade. */
const ONE = 0.3;
/** Labels of marks that are closer overlap. */
const LABEL_WIDTH = 0.17;
const N_TIMES = 5;

type Bin = RowOf<typeof TABLES.histogram>;

function timeScale(bins: readonly Bin[]): (ps: number) => number {
  const [first, last] = [bins[0]?.low_ps ?? 0, bins.at(-1)?.high_ps ?? 1];
  if (growsWider(bins) && first > 0) return (ps) => Math.log(ps / first) / Math.log(last / first);
  return (ps) => (ps - first) / (last - first);
}

/** Whether each bin is wider than the one before, rather than as wide. */
function growsWider(bins: readonly Bin[]): boolean {
  const widths = bins.map(({ low_ps: low, high_ps: high }) => (high ?? 0) - (low ?? 0));
  return Math.max(...widths) > 1.5 * Math.min(...widths);
}

function countScale(most: number): { height: (n: number) => number; ticks: number[]; isLog: boolean } {
  if (most < LOG_FROM) {
    const step = Math.max(1, Math.ceil(most / 4));
    const ticks = Array.from({ length: Math.floor(most / step) }, (_, i) => (i + 1) * step);
    return { height: (n) => n / Math.max(most, 1), ticks, isLog: false };
  }
  const whole = Math.log10(most) + ONE;
  const ticks = Array.from({ length: Math.floor(Math.log10(most)) + 1 }, (_, power) => 10 ** power);
  return { height: (n) => (n > 0 ? (Math.log10(n) + ONE) / whole : 0), ticks, isLog: true };
}

function withRows(marks: Omit<Mark, 'row'>[]): Mark[] {
  const ends: number[] = [];
  return marks.map((mark) => {
    const free = ends.findIndex((end) => mark.left - end >= LABEL_WIDTH);
    const row = free < 0 ? ends.length : free;
    ends[row] = mark.left;
    return { ...mark, row };
  });
}

/** At round times; of bins that grow, at some of their edges. */
function timeTicks(bins: readonly Bin[], place: (ps: number) => number): Tick[] {
  const edges = [...bins.map(({ low_ps: low }) => low ?? 0), bins.at(-1)?.high_ps ?? 0];
  const every = Math.max(1, Math.ceil(edges.length / N_TIMES));
  const times = growsWider(bins)
    ? edges.filter((_, i) => i % every === 0)
    : ticksOf(edges[0] ?? 0, edges.at(-1) ?? 0, N_TIMES);
  return times
    .map((ps) => ({ text: format(ps, 'ps'), place: place(ps) }))
    .filter((tick) => tick.place <= 0.96);
}

/** The histogram with marks at the percentiles of the table; null: nothing to draw. */
export function histogramOf(payload: Payload): HistogramDrawing | null {
  const bins = readTable(payload, TABLES.histogram).all();
  if (bins.length < 2) return null;
  const place = timeScale(bins);
  const scale = countScale(Math.max(...bins.map(({ n_requests: n }) => n ?? 0)));
  const bars = bins
    .filter(({ n_requests: n }) => n)
    .map(({ low_ps: low, high_ps: high, n_requests: n }) => ({
      left: place(low ?? 0),
      width: place(high ?? 0) - place(low ?? 0),
      height: scale.height(n ?? 0),
      tip: `${format(low, 'ps')} to ${format(high, 'ps')}: ${format(n, 'count')}`,
    }));
  const marks = readTable(payload, TABLES.percentiles)
    .all()
    .filter(({ request }) => request !== null)
    .map(({ percentile, latency_ps: ps }) => ({
      name: percentile,
      text: format(ps, 'ps'),
      left: place(ps ?? 0),
    }));
  const first = bins[0];
  const unit = readTable(payload, TABLES.models).title('n_requests').toLowerCase();
  const per = growsWider(bins)
    ? `${unit} per bin, bins grow with the latency`
    : `${unit} per ${format((first?.high_ps ?? 0) - (first?.low_ps ?? 0), 'ps')}`;
  return {
    bars,
    marks: withRows(marks),
    counts: scale.ticks.map((n) => ({ text: format(n, 'count'), place: scale.height(n) })),
    times: timeTicks(bins, place),
    note: scale.isLog ? `${per}, log scale` : per,
  };
}

interface SizeBar {
  size: string;
  /** Shares of the tallest bar. */
  examples: number;
  padding: number;
  tip: string;
}

export interface SizesDrawing {
  bars: SizeBar[];
  counts: Tick[];
  /** What a bar is made of: examples, or sequences. */
  unit: string;
  hasPadding: boolean;
  /** What the height of a bar counts. */
  note: string;
  /** Sizes beyond those drawn. */
  nMore: number;
}

const MOST_BARS = 16;
const SINGULAR: Readonly<Record<string, string>> = { batches: 'batch', requests: 'request', passes: 'pass' };
const N_COUNTS = 4;

/** Batches by size: their examples and padding; of many sizes those with the most slots. null: unknown. */
export function sizesOf(payload: Payload): SizesDrawing | null {
  const sizes = readIfAny(payload, TABLES.sizes);
  if (!sizes?.length) return null;
  const rows = sizes.all().map((row) => ({ ...row, slots: (row.examples ?? 0) + (row.padding ?? 0) }));
  const chosen = new Set([...rows].sort((a, b) => b.slots - a.slots).slice(0, MOST_BARS));
  const tallest = Math.max(1, ...rows.map(({ slots }) => slots));
  const unit = sizes.title('n').toLowerCase();
  const hasPadding = rows.some(({ padding }) => padding !== null);
  const examples = sizes.title('examples');
  return {
    counts: ticksOf(0, tallest, N_COUNTS)
      .filter((n) => n > 0 && Number.isInteger(n))
      .map((n) => ({ text: format(n, 'count'), place: n / tallest })),
    unit: examples,
    bars: rows
      .filter((row) => chosen.has(row))
      .map((row) => ({
        size: format(row.size, 'count'),
        examples: (row.examples ?? 0) / tallest,
        padding: (row.padding ?? 0) / tallest,
        tip:
          `${plural(row.n ?? 0, SINGULAR[unit] ?? unit, unit)} of ${format(row.size, 'count')}, ` +
          `${format(row.mean_ps, 'ps')} on average` +
          (row.padding === null ? '' : `; ${format(row.padding, 'count')} slots of padding`),
      })),
    hasPadding,
    note: `${hasPadding ? 'batch slots' : examples.toLowerCase()} by size`,
    nMore: rows.length - chosen.size,
  };
}

/** The choice that shows a request on the timeline, with a tenth of its time around it. */
export function onTimeline(
  host: string,
  startPs: number | null,
  latencyPs: number | null,
): Record<string, string> | null {
  if (!host || startPs === null || latencyPs === null) return null;
  const around = Math.ceil(latencyPs / 10);
  return {
    hosts: host,
    start_ps: String(Math.max(0, startPs - around)),
    end_ps: String(startPs + latencyPs + around),
  };
}

/** The models to choose among, each with its number of requests; none if there is only one. */
export function modelsOf(payload: Payload): { name: string; title: string }[] {
  const rows = readTable(payload, TABLES.models).all();
  if (rows.length < 2) return [];
  const n = rows.reduce((sum, { n_requests: requests }) => sum + (requests ?? 0), 0);
  return [
    { name: '', title: `All models (${format(n, 'count')})` },
    ...rows.map(({ model, n_requests: requests }) => ({
      name: model,
      title: `${model} (${format(requests, 'count')})`,
    })),
  ];
}
