/** The memory viewer's payload as buffers, points and programs; the geometry of its charts. Pure. */
import { readNumber, readTable, type RowsOf } from '../../api/declared';
import { MEMORY_VIEWER } from '../../api/tables/memory_viewer';
import type { Payload } from '../../api/types';
import { categoryToken, paletteToken } from '../../base/color';
import { format } from '../../base/units';

export const { tables: TABLES, scalars: SCALARS } = MEMORY_VIEWER.page;

export interface Buffer {
  /** Number in the HLO file. */
  id: number;
  instruction: string;
  opcode: string;
  category: string;
  sizeBytes: number;
  unpaddedBytes: number;
  expansion: number;
  shape: string;
  padded: string;
  opName: string;
  first: number;
  last: number;
  offsetBytes: number | null;
  allocation: number | null;
  isAtPeak: boolean;
  source: string;
  stack: string;
}

export interface Point {
  step: number;
  heldBytes: number;
  unpaddedBytes: number;
  instruction: string;
}

export interface Steps {
  first: number;
  last: number;
}

/** Buffers at the peak, or on the map: thousands, so they are read column by column. */
export function buffersOf(rows: RowsOf<typeof TABLES.live>): Buffer[] {
  const [id, sizeBytes, unpaddedBytes, expansion] = [
    rows.number('buffer_id'),
    rows.number('size_bytes'),
    rows.number('unpadded_bytes'),
    rows.number('expansion'),
  ];
  const [first, last, offsetBytes, allocation] = [
    rows.number('first_step'),
    rows.number('last_step'),
    rows.number('offset_bytes'),
    rows.number('allocation'),
  ];
  const [instruction, opcode, category, shape] = [
    rows.text('instruction'),
    rows.text('opcode'),
    rows.text('category'),
    rows.text('shape'),
  ];
  const [padded, opName, source, stack, isAtPeak] = [
    rows.text('padded_dimensions'),
    rows.text('op_name'),
    rows.text('source'),
    rows.text('stack'),
    rows.flag('is_at_peak'),
  ];
  return Array.from({ length: rows.length }, (_, row) => ({
    id: id(row) ?? -1,
    instruction: instruction(row),
    opcode: opcode(row),
    category: category(row),
    sizeBytes: sizeBytes(row) ?? 0,
    unpaddedBytes: unpaddedBytes(row) ?? 0,
    expansion: expansion(row) ?? 1,
    shape: shape(row),
    padded: padded(row),
    opName: opName(row),
    first: first(row) ?? 0,
    last: last(row) ?? 0,
    offsetBytes: offsetBytes(row),
    allocation: allocation(row),
    isAtPeak: isAtPeak(row),
    source: source(row),
    stack: stack(row),
  }));
}

export function pointsOf(payload: Payload): Point[] {
  const rows = readTable(payload, TABLES.timeline);
  const [step, heldBytes, unpaddedBytes, instruction] = [
    rows.number('step'),
    rows.number('held_bytes'),
    rows.number('unpadded_bytes'),
    rows.text('instruction'),
  ];
  return Array.from({ length: rows.length }, (_, row) => ({
    step: step(row) ?? 0,
    heldBytes: heldBytes(row) ?? 0,
    unpaddedBytes: unpaddedBytes(row) ?? 0,
    instruction: instruction(row),
  }));
}

export function stepsOf(payload: Payload): Steps {
  return {
    first: readNumber(payload, SCALARS.first_step) ?? 0,
    last: readNumber(payload, SCALARS.last_step) ?? 0,
  };
}

export interface Program {
  title: string;
  peakBytes: number | null;
}

/** The title of the answer's program. */
export function programOf(payload: Payload): string {
  return readTable(payload, TABLES.chosen).text('program')(0);
}

export function programsOf(payload: Payload): Program[] {
  const programs = readTable(payload, TABLES.programs)
    .all()
    .map(({ program, peak_bytes }) => ({ title: program, peakBytes: peak_bytes }));
  return programs.sort((a, b) => (b.peakBytes ?? -1) - (a.peakBytes ?? -1));
}

export interface Space {
  value: string;
  title: string;
}

export function spacesOf(payload: Payload): Space[] {
  return readTable(payload, TABLES.spaces)
    .all()
    .map(({ space, name, peak_bytes }) => ({
      value: String(space),
      title: `${name} ${format(peak_bytes, 'bytes')}`,
    }));
}

const FIXED: Readonly<Record<string, string>> = {
  Parameter: categoryToken('input'),
  Output: categoryToken('output'),
  Constant: categoryToken('idle'),
  'Thread-local': categoryToken('launch'),
};
const MOST_COLOURS = 8;

/**
 * The property that colors a buffer: its kind of allocation; for a temporary, the opcode that produces it.
 */
export function colorKey(buffer: Buffer): string {
  return buffer.category in FIXED ? buffer.category : buffer.opcode || 'unknown';
}

export interface Colors {
  token(buffer: Buffer): string;
  legend: { name: string; token: string }[];
}

/** The buffer that the link names: by its id, else the largest one of an instruction. */
export function keptOf(
  buffers: readonly Buffer[],
  { buffer, op }: Readonly<Record<string, string>>,
): Buffer | null {
  if (buffer) return buffers.find(({ id }) => String(id) === buffer) ?? null;
  return op
    ? (buffers.filter(({ instruction }) => instruction === op).sort((a, b) => b.sizeBytes - a.sizeBytes)[0] ??
        null)
    : null;
}

/**
 * Kinds of allocations have fixed colors, the opcodes with the most bytes one palette color each, the others
 * are gray.
 */
export function colorsOf(groups: readonly (readonly Buffer[])[]): Colors {
  const bytes = new Map<string, number>();
  for (const buffers of groups)
    for (const buffer of buffers)
      bytes.set(colorKey(buffer), (bytes.get(colorKey(buffer)) ?? 0) + buffer.sizeBytes);
  const names = [...bytes.keys()].sort((a, b) => (bytes.get(b) ?? 0) - (bytes.get(a) ?? 0));
  const opcodes = names.filter((name) => !(name in FIXED));
  const tokens = new Map(opcodes.slice(0, MOST_COLOURS).map((name, i) => [name, paletteToken(i)]));
  const token = (name: string): string => FIXED[name] ?? tokens.get(name) ?? '--line-strong';
  const legend = names
    .filter((name) => name in FIXED || tokens.has(name))
    .map((name) => ({ name, token: token(name) }));
  if (opcodes.length > MOST_COLOURS) legend.push({ name: 'others', token: '--line-strong' });
  return { token: (buffer) => token(colorKey(buffer)), legend };
}

export type Order = 'program' | 'size';

/** The buffers in program order (as the server sends them) or by size. */
export function inOrder(buffers: readonly Buffer[], order: Order): Buffer[] {
  return order === 'program' ? [...buffers] : [...buffers].sort((a, b) => b.sizeBytes - a.sizeBytes);
}

/** Left edges of boxes side by side, each as wide as its buffer is large; the last edge is 1. */
export function edgesOf(buffers: readonly Buffer[]): Float64Array {
  const edges = new Float64Array(buffers.length + 1);
  buffers.forEach(({ sizeBytes }, i) => {
    edges[i + 1] = (edges[i] ?? 0) + sizeBytes;
  });
  const total = edges[buffers.length] || 1;
  return edges.map((edge) => edge / total);
}

/** Index of the box at a share of the width, or -1. */
export function boxAt(edges: Float64Array, share: number): number {
  if (share < 0 || share >= 1 || edges.length < 2) return -1;
  let [low, high] = [0, edges.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((edges[middle] ?? 0) <= share) low = middle;
    else high = middle - 1;
  }
  return low;
}

export interface Extent {
  low: number;
  high: number;
}

/** All used offset ranges, and the block under a point of the map: of several the one that starts last. */
export function offsetsOf(blocks: readonly Buffer[], wholeBytes: number): Extent {
  const high = blocks.reduce(
    (most, { offsetBytes, sizeBytes }) => Math.max(most, (offsetBytes ?? 0) + sizeBytes),
    0,
  );
  return { low: 0, high: Math.max(high, wholeBytes, 1) };
}

export function blockAt(blocks: readonly Buffer[], step: number, offset: number): Buffer | null {
  let newest: Buffer | null = null;
  for (const block of blocks) {
    const blockOffset = block.offsetBytes;
    if (
      blockOffset === null ||
      step < block.first ||
      step >= block.last + 1 ||
      offset < blockOffset ||
      offset >= blockOffset + block.sizeBytes
    )
      continue;
    if (!newest || block.first > newest.first) newest = block;
  }
  return newest;
}

/** The last point at or before a step. */
export function pointAt(points: readonly Point[], step: number): Point | null {
  let [low, high] = [0, points.length - 1];
  if (high < 0) return null;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((points[middle]?.step ?? 0) <= step) low = middle;
    else high = middle - 1;
  }
  return points[low] ?? null;
}

/** Steps zoomed about one of them, within the whole; at least four wide. */
export function zoomed(steps: Steps, whole: number, factor: number, about: number): Steps {
  const width = Math.min(whole, Math.max(4, Math.round((steps.last - steps.first + 1) * factor)));
  const share = (about - steps.first) / Math.max(1, steps.last - steps.first + 1);
  const first = Math.max(0, Math.min(whole - width, Math.round(about - share * width)));
  return { first, last: first + width - 1 };
}

export function stepParams(steps: Steps, whole: number): Record<string, string | undefined> {
  const isAll = steps.first <= 0 && steps.last >= whole - 1;
  return {
    first_step: isAll ? undefined : String(steps.first),
    last_step: isAll ? undefined : String(steps.last),
  };
}
