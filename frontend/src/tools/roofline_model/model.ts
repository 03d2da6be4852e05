/** A roofline's points and roofs from the payload's tables; which of them pass the choices made. Pure. */
import { numberOf, rowsOf, scalarNumber } from '../../api/table';
import type { Payload } from '../../api/types';
import type { TableData, TableView } from '../../widgets/table/model';

export interface Point {
  kind: 'op' | 'program' | 'step';
  /** Row in its table. */
  row: number;
  name: string;
  program: string;
  category: string;
  boundBy: string;
  /** FLOPs per byte; null: no FLOPs or no bytes, so it has no place on the chart. */
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

/** What x is: the intensity of what binds, or of one memory. */
export const BOUND = 'bound';

export function roofsOf(payload: Payload): Roof[] {
  return rowsOf(payload.tables['roofs']).map((row) => ({ name: String(row['name']), title: String(row['title']), bytesPerS: numberOf(row['bytes_per_s']) ?? 0 }));
}

/** All points; the intensity is of the memory asked for. */
export function pointsOf(payload: Payload, memory: string): Point[] {
  const column = memory === BOUND ? 'bound_flops_per_byte' : `${memory}_flops_per_byte`;
  const point = (kind: Point['kind'], row: number, cells: Record<string, unknown>): Point => {
    const number = (name: string): number | null => numberOf(cells[name] as number | null);
    const positive = (value: number | null): number | null => (value !== null && value > 0 ? value : null);
    return {
      ...{ kind, row, name: String(cells['op'] ?? cells['step'] ?? ''), program: String(cells['program'] ?? ''), category: String(cells['category'] ?? '') },
      ...{ boundBy: String(cells['bound_by'] ?? ''), intensity: positive(number(column)), flopRate: positive(number('flop_rate_flops_per_s')) },
      ...{ timePs: number('total_self_time_ps') ?? number('total_time_ps') ?? 0, share: number('self_fraction'), efficiency: number('efficiency_fraction') },
    };
  };
  const ops = rowsOf(payload.tables['ops']).map((cells, row) => point('op', row, cells));
  const programs = rowsOf(payload.tables['programs']).map((cells, row) => point(row < 1 || cells['step'] === 'Average' ? 'program' : 'step', row, cells));
  return [...ops, ...programs];
}

/** What the select of steps offers: names of the table of program and steps, as they stand in the link, with what they are called. */
export function stepChoices(payload: Payload): { name: string; title: string }[] {
  const titles: Record<string, string> = { Total: 'the whole capture', Average: 'average' };
  return rowsOf(payload.tables['programs']).map(({ step }) => ({ name: String(step), title: titles[String(step)] ?? String(step) }));
}

export interface PointFilter {
  /** `all`, `ops` or `steps`. */
  show: string;
  /** The one step whose point is shown; any other text than a step's name stands for all. */
  step: string;
  /** Whether an operation's row passes the filters of the table. */
  passes: (row: number) => boolean;
}

/** The points that the choices leave. */
export function pointsShown(points: readonly Point[], { show, step, passes }: PointFilter): Point[] {
  const isStep = points.some(({ kind, name }) => kind !== 'op' && name === step);
  return points.filter((point) => (point.kind === 'op' ? show !== 'steps' && passes(point.row) : show !== 'ops' && (!isStep || point.name === step)));
}

/** Operations drawn at first: thousands of points take a moment for each change, and lie on one another. */
export const MOST_DRAWN = 1000;

/** Of many operations those that took most time, in their order; programs, steps and what is `kept` always. */
export function mainPoints(points: readonly Point[], most: number, kept: (point: Point) => boolean): readonly Point[] {
  const ops = points.filter(({ kind }) => kind === 'op');
  if (ops.length <= most) return points;
  const main = new Set([...ops].sort((a, b) => b.timePs - a.timePs).slice(0, most));
  return points.filter((point) => point.kind !== 'op' || main.has(point) || kept(point));
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

/** A roof's corners within the extent: up to the ridge as bandwidth allows, then flat at the peak FLOP rate. */
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

const HIDDEN_AT_FIRST = [
  'rank', 'program', 'avg_time_ps', 'total_time_ps', 'avg_self_time_ps', 'cumulative_fraction', 'time_fraction', 'time_per_device_ps', 'model_flops_per_s', 'memory_bandwidth_bytes_per_s',
  'cmem_read_bytes_per_s', 'cmem_write_bytes_per_s', 'vmem_read_bytes_per_s', 'vmem_write_bytes_per_s', 'operational_intensity_flops_per_byte', 'hbm_flops_per_byte', 'cmem_read_flops_per_byte',
  'cmem_write_flops_per_byte', 'vmem_read_flops_per_byte', 'vmem_write_flops_per_byte', 'compute_fraction', 'memory_fraction', 'source',
];

export function initialView(data: TableData, idle: readonly string[], kept: readonly string[] = []): TableView {
  const names = new Set(data.columns.map((column) => column.name));
  return { sort: null, query: '', filters: {}, hidden: new Set([...HIDDEN_AT_FIRST, ...idle].filter((name) => names.has(name) && !kept.includes(name))) };
}

export const TOTALS = ['n_occurrences', 'total_self_time_ps', 'self_fraction'];

export function peakOf(payload: Payload): number | null {
  return scalarNumber(payload, 'peak_flops_per_s');
}
