/** A roofline's points and roofs from the payload's tables; which of them pass the filters. Pure. */
import { readNumber, readTable, type ColumnOf } from '../../api/declared';
import { ROOFLINE_MODEL } from '../../api/tables/roofline_model';
import type { Payload } from '../../api/types';
import type { TableData, TableView } from '../../widgets/table/model';

export const TABLES = ROOFLINE_MODEL.page.tables;
const SCALARS = ROOFLINE_MODEL.page.scalars;
type OpColumn = ColumnOf<typeof TABLES.ops>;

export interface Point {
  kind: 'op' | 'program' | 'step';
  /** Row in its table. */
  row: number;
  name: string;
  program: string;
  category: string;
  boundBy: string;
  /** FLOPs per byte; null: no FLOPs or no bytes, so it cannot be plotted. */
  intensity: number | null;
  flopRate: number | null;
  timePs: number;
  share: number | null;
  efficiency: number | null;
}

export interface Roof {
  name: string;
  title: string;
  bytesPerS: number;
}

export interface Box {
  x: [number, number];
  y: [number, number];
}

/**
 * The meaning of x: the intensity of one memory, HBM's at first, as in tiles and tables; or that of the
 * memory nearest to its peak.
 */
export const BOUND = 'bound';
export const HBM = 'hbm';

/** Rows of the table of program and steps that are no step. */
const TOTAL = 'Total';
const AVERAGE = 'Average';

export function roofsOf(payload: Payload): Roof[] {
  return readTable(payload, TABLES.roofs)
    .all()
    .map(({ name, title, bytes_per_s }) => ({ name, title, bytesPerS: bytes_per_s ?? 0 }));
}

/** The column of intensities that x uses. */
const INTENSITIES = {
  bound: 'bound_flops_per_byte',
  hbm: 'hbm_flops_per_byte',
  cmem_read: 'cmem_read_flops_per_byte',
  cmem_write: 'cmem_write_flops_per_byte',
  vmem_read: 'vmem_read_flops_per_byte',
  vmem_write: 'vmem_write_flops_per_byte',
} as const satisfies Record<string, OpColumn>;
type Intensity = (typeof INTENSITIES)[keyof typeof INTENSITIES];

/** The columns that both tables of points have. */
interface Measures {
  number(name: Intensity | 'flop_rate_flops_per_s' | 'efficiency_fraction'): (row: number) => number | null;
  text(name: 'bound_by'): (row: number) => string;
}

/** The position of a row's point on the chart. */
function placeReader(
  rows: Measures,
  memory: string,
): (row: number) => Pick<Point, 'boundBy' | 'intensity' | 'flopRate' | 'efficiency'> {
  const positive = (value: number | null): number | null => (value !== null && value > 0 ? value : null);
  // A link may name a memory that no device has.
  const intensity = Object.hasOwn(INTENSITIES, memory)
    ? rows.number(INTENSITIES[memory as keyof typeof INTENSITIES])
    : null;
  const [rate, efficiency, boundBy] = [
    rows.number('flop_rate_flops_per_s'),
    rows.number('efficiency_fraction'),
    rows.text('bound_by'),
  ];
  return (row) => ({
    boundBy: boundBy(row),
    intensity: positive(intensity?.(row) ?? null),
    flopRate: positive(rate(row)),
    efficiency: efficiency(row),
  });
}

function opPoints(payload: Payload, memory: string): Point[] {
  const rows = readTable(payload, TABLES.ops);
  const [name, program, category] = [rows.text('op'), rows.text('program'), rows.text('category')];
  const [selfPs, share] = [rows.number('total_self_time_ps'), rows.number('self_fraction')];
  const place = placeReader(rows, memory);
  return Array.from({ length: rows.length }, (_, row) => ({
    kind: 'op',
    row,
    name: name(row),
    program: program(row),
    category: category(row),
    timePs: selfPs(row) ?? 0,
    share: share(row),
    ...place(row),
  }));
}

function stepPoints(payload: Payload, memory: string): Point[] {
  const rows = readTable(payload, TABLES.programs);
  const [step, totalPs, place] = [rows.text('step'), rows.number('total_time_ps'), placeReader(rows, memory)];
  return Array.from({ length: rows.length }, (_, row) => ({
    kind: row < 1 || step(row) === AVERAGE ? 'program' : 'step',
    row,
    name: step(row),
    program: '',
    category: '',
    timePs: totalPs(row) ?? 0,
    share: null,
    ...place(row),
  }));
}

/** All points; the intensity is that of the chosen memory. */
export function pointsOf(payload: Payload, memory: string): Point[] {
  return [...opPoints(payload, memory), ...stepPoints(payload, memory)];
}

/**
 * The choices of the select of steps: names of the table of program and steps, as in the link, with their
 * titles.
 */
export function stepChoices(payload: Payload): { name: string; title: string }[] {
  const titles: Record<string, string> = { [TOTAL]: 'the whole capture', [AVERAGE]: 'average' };
  const rows = readTable(payload, TABLES.programs);
  const step = rows.text('step');
  return Array.from({ length: rows.length }, (_, row) => ({
    name: step(row),
    title: titles[step(row)] ?? step(row),
  }));
}

export interface PointFilter {
  /** `all`, `ops` or `steps`. */
  show: string;
  /** The one step whose point is shown; any text other than a step's name means all. */
  step: string;
  /** Whether an operation's row passes the filters of the table. */
  passes: (row: number) => boolean;
}

/** The points that pass the filters. */
export function pointsShown(points: readonly Point[], { show, step, passes }: PointFilter): Point[] {
  const isStep = points.some(({ kind, name }) => kind !== 'op' && name === step);
  return points.filter((point) =>
    point.kind === 'op'
      ? show !== 'steps' && passes(point.row)
      : show !== 'ops' && (!isStep || point.name === step),
  );
}

/** Operations drawn at first: thousands of points take a moment for each change, and overlap. */
export const MOST_DRAWN = 1000;

/**
 * Of many operations those that took most time, in their order; always programs, steps and the operation in
 * row `keptRow`.
 */
export function mainPoints(points: readonly Point[], most: number, keptRow: number): readonly Point[] {
  const ops = points.filter(({ kind }) => kind === 'op');
  if (ops.length <= most) return points;
  const main = new Set([...ops].sort((a, b) => b.timePs - a.timePs).slice(0, most));
  return points.filter((point) => point.kind !== 'op' || main.has(point) || point.row === keptRow);
}

export function isPlaced(point: Point): point is Point & { intensity: number; flopRate: number } {
  return point.intensity !== null && point.flopRate !== null;
}

function decade(value: number, way: 'down' | 'up'): number {
  const power = Math.log10(value);
  return 10 ** (way === 'down' ? Math.floor(power) : Math.ceil(power));
}

/** The chart's extent: whole decades around all points and the ridges of the roofs. */
export function extentOf(points: readonly Point[], roofs: readonly Roof[], peak: number | null): Box {
  const placed = points.filter(isPlaced);
  const ridges = peak ? roofs.map((roof) => peak / roof.bytesPerS) : [];
  const xs = [...placed.map(({ intensity }) => intensity), ...ridges];
  const ys = [...placed.map(({ flopRate }) => flopRate), ...(peak ? [peak] : [])];
  if (!xs.length || !ys.length) return { x: [0.1, 1000], y: [1e9, 1e12] };
  const ends = (values: readonly number[]): [number, number] => {
    const low = values.reduce((least, value) => Math.min(least, value));
    const high = values.reduce((most, value) => Math.max(most, value));
    return [decade(low / 1.5, 'down'), decade(high * 1.5, 'up')];
  };
  return { x: ends(xs), y: ends(ys) };
}

/** Powers of ten on an axis from one to another, at most seven of them. */
export function powersOfTen([low, high]: [number, number]): number[] {
  const [first, last] = [Math.log10(low), Math.log10(high)].map(Math.round) as [number, number];
  const step = Math.ceil((last - first) / 6) || 1;
  const start = Math.ceil(first / step) * step;
  return Array.from({ length: Math.floor((last - start) / step) + 1 }, (_, i) =>
    Number(`1e${start + i * step}`),
  );
}

/**
 * A roof's corners within the extent: rising with bandwidth up to the ridge, then flat at the peak FLOP rate.
 */
export function roofLine(roof: Roof, peak: number | null, { x, y }: Box): [number, number][] {
  const rate = (intensity: number): number => Math.min(peak ?? Infinity, intensity * roof.bytesPerS);
  const start = Math.max(x[0], y[0] / roof.bytesPerS);
  const ridge = peak === null ? x[1] : peak / roof.bytesPerS;
  const corners = [start, ...(ridge > start && ridge < x[1] ? [ridge] : []), x[1]];
  return start < x[1] ? corners.map((intensity) => [intensity, rate(intensity)]) : [];
}

/** Radius of a point in px: its area grows with its share of the time. */
export function sizeOf(share: number | null): number {
  return share === null ? 9 : 5 + 22 * Math.sqrt(Math.max(0, Math.min(1, share)));
}

const CELLS = { x: 600, y: 240 };

/**
 * Of points that look like one, in the same place with the same color and size, the first: the others are
 * invisible, and drawing each takes time.
 */
export function distinctPoints<P extends Point & { intensity: number; flopRate: number }>(
  points: readonly P[],
  { x, y }: Box,
  keptPoint: Point | undefined,
): P[] {
  const cell = (value: number, [low, high]: [number, number], n: number): number =>
    Math.floor((Math.log(value / low) / Math.log(high / low)) * n);
  const places = new Set<string>();
  return points.filter((point) => {
    const key = [
      point.kind,
      point.category,
      Math.round(sizeOf(point.share)),
      cell(point.intensity, x, CELLS.x),
      cell(point.flopRate, y, CELLS.y),
    ].join();
    if (places.has(key) && point !== keptPoint) return false;
    places.add(key);
    return true;
  });
}

/** What an operation is, its time and what limits it come first. */
export const ORDER: readonly OpColumn[] = [
  'op',
  'program',
  'category',
  'total_self_time_ps',
  'self_fraction',
  'bound_by',
  'efficiency_fraction',
  'flop_rate_flops_per_s',
  'hbm_bytes_per_s',
  'operational_intensity_flops_per_byte',
  'n_occurrences',
];

const HIDDEN_AT_FIRST: readonly OpColumn[] = [
  'rank',
  'avg_time_ps',
  'total_time_ps',
  'avg_self_time_ps',
  'cumulative_fraction',
  'time_fraction',
  'time_per_device_ps',
  'model_flops_per_s',
  'memory_bandwidth_bytes_per_s',
  'cmem_read_bytes_per_s',
  'cmem_write_bytes_per_s',
  'vmem_read_bytes_per_s',
  'vmem_write_bytes_per_s',
  'all_memories_flops_per_byte',
  'bound_flops_per_byte',
  'hbm_flops_per_byte',
  'flops',
  'hbm_bytes',
  'nearest_limit',
  'device_time_fraction',
  'cmem_read_flops_per_byte',
  'cmem_write_flops_per_byte',
  'vmem_read_flops_per_byte',
  'vmem_write_flops_per_byte',
  'compute_fraction',
  'memory_fraction',
  'source',
];

export function initialView(
  data: TableData,
  idle: readonly string[],
  keptNames: readonly string[] = [],
): TableView {
  const names = new Set(data.columns.map((column) => column.name));
  return {
    sort: null,
    query: '',
    filters: {},
    hidden: new Set(
      [...HIDDEN_AT_FIRST, ...idle].filter((name) => names.has(name) && !keptNames.includes(name)),
    ),
  };
}

export const TOTALS: readonly OpColumn[] = ['n_occurrences', 'total_self_time_ps', 'self_fraction'];

export function peakOf(payload: Payload): number | null {
  return readNumber(payload, SCALARS.peak_flops_per_s);
}
