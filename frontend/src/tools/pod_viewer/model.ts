/** Positions of cores on the map, the color of a value, and the groups of a core. Pure. */
import { readIfAny, readTable, type RowsOf } from '../../api/declared';
import { POD_VIEWER } from '../../api/tables/pod_viewer';
import type { Payload } from '../../api/types';
import type { Torus } from './torus';

export const { tables: TABLES, scalars: SCALARS } = POD_VIEWER.page;
export const CELLS = POD_VIEWER.cells.tables.cells;
export const CHANNEL_STEPS = POD_VIEWER.channel.tables.channel_steps;

export type CoreRows = RowsOf<typeof TABLES.cores>;
export type PartRows = RowsOf<typeof TABLES.parts>;
export type ChannelRows = RowsOf<typeof TABLES.channels>;

/** What is compared, within a sentence: core, rank, GPU. */
export function unitOf(rows: CoreRows): string {
  const title = rows.title('core');
  return title === title.toUpperCase() ? title : title.toLowerCase();
}

/** The mean of the known values of `n` rows; null: none is known. */
export function meanOf(value: (row: number) => number | null, n: number): number | null {
  const known = Array.from({ length: n }, (_, row) => value(row)).filter((one) => one !== null);
  return known.length ? known.reduce((sum, one) => sum + one, 0) / known.length : null;
}

/** The tables of the page. */
export interface Pod {
  /** The mean of all steps. */
  cores: CoreRows;
  parts: PartRows;
  /** null: no steps are marked, so the whole capture is shown. */
  steps: RowsOf<typeof TABLES.steps> | null;
  stragglers: RowsOf<typeof TABLES.stragglers>;
  collectives: RowsOf<typeof TABLES.collectives>;
  channels: ChannelRows;
  /** null: the devices are no TPUs; without rows: the chips' places are unknown. */
  topology: RowsOf<typeof TABLES.topology> | null;
  /** null: the job has no process groups of PyTorch. */
  processGroups: RowsOf<typeof TABLES.process_groups> | null;
}

export function podOf(payload: Payload): Pod {
  return {
    cores: readTable(payload, TABLES.cores),
    parts: readTable(payload, TABLES.parts),
    steps: readIfAny(payload, TABLES.steps),
    stragglers: readTable(payload, TABLES.stragglers),
    collectives: readTable(payload, TABLES.collectives),
    channels: readTable(payload, TABLES.channels),
    topology: readIfAny(payload, TABLES.topology),
    processGroups: readIfAny(payload, TABLES.process_groups),
  };
}

/** The slice that the chips form. */
export interface Slice {
  shape: string;
  generation: string;
  size: [number, number, number];
  wraps: [boolean, boolean, boolean];
  linkBytesPerS: number | null;
}

/** null: the chips' places are unknown. */
export function sliceOf({ topology }: Pod): Slice | null {
  if (!topology?.length) return null;
  const size = (['n_x', 'n_y', 'n_z'] as const).map((name) => topology.number(name)(0) ?? 1);
  const wraps = (['wraps_x', 'wraps_y', 'wraps_z'] as const).map((name) => topology.flag(name)(0));
  return {
    shape: topology.text('shape')(0),
    generation: topology.text('generation')(0),
    size: size as Slice['size'],
    wraps: wraps as Slice['wraps'],
    linkBytesPerS: topology.number('link_bytes_per_s')(0),
  };
}

export interface Core {
  name: string;
  host: string;
  chip: number;
  chipId: number | null;
  device: number;
  /** (x, y, z) of the chip in its slice; null: unknown. */
  place: readonly [number, number, number] | null;
}

export function coresOf(rows: CoreRows): Core[] {
  const [name, host] = [rows.text('core'), rows.text('host')];
  const [chip, chipId, device] = [rows.number('chip'), rows.number('chip_id'), rows.number('device')];
  const places = rows.has('x') ? (['x', 'y', 'z'] as const).map((axis) => rows.number(axis)) : null;
  return Array.from({ length: rows.length }, (_, row) => ({
    name: name(row),
    host: host(row),
    chip: chip(row) ?? row,
    chipId: chipId(row),
    device: device(row) ?? row,
    place: places && (places.map((place) => place(row) ?? 0) as [number, number, number]),
  }));
}

/**
 * Left and top of each core in cells; hosts are blocks with a gap of `GAP` cells, cores of a chip are side by
 * side.
 */
export interface Layout {
  x: Float32Array;
  y: Float32Array;
  columns: number;
  rows: number;
  /** Blocks of hosts, for their names and frames. */
  blocks: { host: string; x: number; y: number; width: number; height: number }[];
  /** Links and labels of a slice; null: a grid without places. */
  torus: Torus | null;
}

const GAP = 0.6;

interface Block {
  host: string;
  /** Rows of the cores, chip by chip. */
  chips: number[][];
}

function blocksOf(cores: readonly Core[]): Block[] {
  const hosts = new Map<string, Map<number, number[]>>();
  cores.forEach(({ host, chip }, row) => {
    const chips = hosts.get(host) ?? new Map<number, number[]>();
    hosts.set(host, chips.set(chip, [...(chips.get(chip) ?? []), row]));
  });
  return [...hosts].map(([host, chips]) => ({
    host,
    chips: [...chips].sort(([a], [b]) => a - b).map(([, rows]) => rows),
  }));
}

/** Hosts in reading order, as many per row as makes cells largest in a box of that shape. */
export function layoutOf(cores: readonly Core[], width: number, height: number): Layout {
  const blocks = blocksOf(cores);
  const perChip = Math.max(1, ...blocks.map(({ chips }) => Math.max(...chips.map((rows) => rows.length))));
  const chipColumns = Math.ceil(Math.sqrt(Math.max(1, ...blocks.map(({ chips }) => chips.length))));
  const blockWidth = chipColumns * perChip;
  const blockHeight = Math.max(1, ...blocks.map(({ chips }) => Math.ceil(chips.length / chipColumns)));
  const across = (n: number): number => n * (blockWidth + GAP) - GAP;
  const down = (n: number): number => Math.ceil(blocks.length / n) * (blockHeight + GAP) - GAP;
  let perRow = 1;
  const cell = (n: number): number => Math.min(width / across(n), height / down(n));
  for (let n = 1; n <= blocks.length; n++) if (cell(n) > cell(perRow)) perRow = n;
  const layout: Layout = {
    x: new Float32Array(cores.length),
    y: new Float32Array(cores.length),
    columns: across(perRow),
    rows: down(perRow),
    blocks: [],
    torus: null,
  };
  blocks.forEach(({ host, chips }, i) => {
    const [left, top] = [(i % perRow) * (blockWidth + GAP), Math.floor(i / perRow) * (blockHeight + GAP)];
    layout.blocks.push({
      host,
      x: left,
      y: top,
      width: Math.min(chips.length, chipColumns) * perChip,
      height: Math.ceil(chips.length / chipColumns),
    });
    chips.forEach((rows, chip) =>
      rows.forEach((row, core) => {
        layout.x[row] = left + (chip % chipColumns) * perChip + core;
        layout.y[row] = top + Math.floor(chip / chipColumns);
      }),
    );
  });
  return layout;
}

/** The core at a place in cells, -1 none. */
export function coreAt({ x, y }: Layout, atX: number, atY: number): number {
  for (let row = 0; row < x.length; row++) {
    const [dx, dy] = [atX - (x[row] as number), atY - (y[row] as number)];
    if (dx >= 0 && dx < 1 && dy >= 0 && dy < 1) return row;
  }
  return -1;
}

/** Colors span at least this share of the largest value: smaller differences look alike. */
const LEAST_SPAN = 0.05;
/** Differences below this share are noise, for which no scale is drawn. */
const NOISE = 0.01;

function extentOf(values: ArrayLike<number | null>): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 0] : [low, high];
}

/** The smallest and largest of all cells, widened on both sides if they hardly differ. */
export function rangeOf(values: ArrayLike<number | null>): [number, number] {
  const [low, high] = extentOf(values);
  const missing = Math.max(0, high * LEAST_SPAN - (high - low)) / 2;
  return [low - missing, high + missing];
}

/** The value that all cells share, apart from noise; null if they differ or there are none. */
export function sharedBy(values: ArrayLike<number | null>): number | null {
  const [low, high] = extentOf(values);
  return values.length && high - low <= high * NOISE ? (low + high) / 2 : null;
}

/** Mean of each core over all steps, or its value in one step: `cells` hold core after core. */
export function shownValues(cells: ArrayLike<number | null>, nCores: number, step: number): Float64Array {
  const nSteps = nCores ? cells.length / nCores : 0;
  const result = new Float64Array(nCores);
  for (let core = 0; core < nCores; core++) {
    if (step >= 0) result[core] = cells[core * nSteps + step] ?? 0;
    else {
      let sum = 0;
      for (let i = core * nSteps; i < (core + 1) * nSteps; i++) sum += cells[i] ?? 0;
      result[core] = sum / Math.max(1, nSteps);
    }
  }
  return result;
}

/** The position of a value in a range, 0–1; 0.5 in a range without width. */
export function shareOf(value: number, [low, high]: readonly [number, number]): number {
  return high > low ? Math.min(Math.max((value - low) / (high - low), 0), 1) : 0.5;
}

/** The index of the link's step; -1: the mean of all. */
export function stepOf(text: string | undefined, nSteps: number): number {
  return text !== undefined && /^\d+$/.test(text) && Number(text) < nSteps ? Number(text) : -1;
}

export interface Link {
  source: number;
  target: number;
  row: number;
}

export function linksOf(channels: ChannelRows): Link[] {
  const [source, target] = [channels.number('source_row'), channels.number('target_row')];
  return Array.from({ length: channels.length }, (_, row) => ({
    source: source(row) ?? -1,
    target: target(row) ?? -1,
    row,
  }));
}

/** A link of the slice that channels use directly, and the longest latency among them. */
export interface Load extends Link {
  latencyPs: number;
}

/**
 * The links between neighboring chips, each once for both directions, with the longest latency of its
 * channels, and their range; null: no channel between neighbors has a latency.
 */
export function linkLoads(
  channels: ChannelRows,
  cores: readonly Core[],
): { links: Load[]; range: [number, number] } | null {
  if (!channels.has('hops')) return null;
  const [hops, latency] = [channels.number('hops'), channels.number('latency_ps')];
  const loads = new Map<string, Load>();
  for (const link of linksOf(channels)) {
    const [from, to] = [cores[link.source]?.place, cores[link.target]?.place];
    const latencyPs = latency(link.row);
    if (!from || !to || hops(link.row) !== 1 || latencyPs === null) continue;
    const key = [from.join(','), to.join(',')].sort().join(' ');
    const former = loads.get(key);
    if (!former || former.latencyPs < latencyPs) loads.set(key, { ...link, latencyPs });
  }
  const links = [...loads.values()];
  return links.length ? { links, range: rangeOf(links.map(({ latencyPs }) => latencyPs)) } : null;
}

/**
 * `chip 39` by the core's name; of a chip with several cores `chip 39, core 1`. null: the chips' places or
 * numbers are unknown.
 */
export function chipNames(cores: readonly Core[]): Map<string, string> | null {
  if (!cores.length || cores.some(({ place, chipId }) => !place || chipId === null)) return null;
  const seen = new Map<number, number>();
  const count = (chip: number): number => {
    const before = seen.get(chip) ?? 0;
    seen.set(chip, before + 1);
    return before;
  };
  const onChip = cores.map(({ chipId }) => count(chipId as number));
  const isOne = seen.size === cores.length;
  return new Map(
    cores.map(({ name, chipId }, row) => [
      name,
      isOne ? `chip ${chipId}` : `chip ${chipId}, core ${onChip[row]}`,
    ]),
  );
}

/** How late each core sends, mean over what it sends in a step; 0 for cores that send nothing. */
export function sendDelays(channels: ChannelRows, nCores: number): Float64Array {
  const [source, delay, times] = (['source_row', 'send_delay_ps', 'n_per_step'] as const).map((name) =>
    channels.number(name),
  ) as [(row: number) => number | null, (row: number) => number | null, (row: number) => number | null];
  const [total, sent] = [new Float64Array(nCores), new Float64Array(nCores)];
  for (let row = 0; row < channels.length; row++) {
    const core = source(row) ?? -1;
    if (core < 0 || core >= nCores) continue;
    const weight = times(row) ?? 1;
    total[core] = (total[core] as number) + (delay(row) ?? 0) * weight;
    sent[core] = (sent[core] as number) + weight;
  }
  return total.map((sum, core) => (sent[core] ? sum / (sent[core] as number) : 0));
}

/**
 * Rows of the cores in a core's group of a collective; groups are written {0,1} {2,3}, `all` means all cores.
 */
export function peersOf(groups: string, cores: readonly Core[], core: number): number[] {
  if (groups === 'all') return cores.map((_, row) => row);
  const device = String(cores[core]?.device);
  const group = groups.match(/\{[\d,]*\}/g)?.find((group) => group.slice(1, -1).split(',').includes(device));
  if (!group) return [];
  const devices = new Set(group.slice(1, -1).split(',').map(Number));
  return cores.flatMap((one, row) => (devices.has(one.device) ? row : []));
}

/** Rows of the cores by own time, longest first. */
export function slowestFirst(cores: CoreRows, most: number): number[] {
  const ownPs = cores.number('own_ps');
  const rows = Array.from({ length: cores.length }, (_, row) => row);
  return rows.length <= most ? rows : rows.sort((a, b) => (ownPs(b) ?? 0) - (ownPs(a) ?? 0)).slice(0, most);
}
