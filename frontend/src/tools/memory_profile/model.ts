/** The memory profile's payload as points of the history, small histories, windows to zoom to. Pure. */
import { readNumber, readTable, type RowsOf } from '../../api/declared';
import { MEMORY_PROFILE } from '../../api/tables/memory_profile';
import type { Payload } from '../../api/types';
import type { Window } from '../time_window';

export const { tables: TABLES, scalars: SCALARS } = MEMORY_PROFILE.page;

export type Timeline = RowsOf<typeof TABLES.timeline>;

export interface Point {
  ps: number;
  stack: number;
  heap: number;
  /** null: not in the trace. `held`: memory that PyTorch's allocator has reserved from the device. */
  free: number | null;
  held: number | null;
  fragmentation: number | null;
}

/** One memory of the overview, with the points of its small history. */
export interface MemoryRow {
  row: number;
  /** The server's name for it: HOST/NAME. */
  fullName: string;
  name: string;
  host: string;
  peakBytes: number;
  /** null: the trace does not report it. */
  capacityBytes: number | null;
  usedFraction: number | null;
  /** Per step; null: there are no steps. */
  floorRise: number | null;
  points: { ps: number; used: number }[];
}

export function pointsOf(timeline: Timeline): Point[] {
  const [ps, stack, heap] = [
    timeline.number('start_ps'),
    timeline.number('stack_bytes'),
    timeline.number('heap_bytes'),
  ];
  const [free, held, fragmentation] = [
    timeline.number('free_bytes'),
    timeline.number('held_bytes'),
    timeline.number('fragmentation_fraction'),
  ];
  return Array.from({ length: timeline.length }, (_, row) => ({
    ps: ps(row) ?? 0,
    stack: stack(row) ?? 0,
    heap: heap(row) ?? 0,
    free: free(row),
    held: held(row),
    fragmentation: fragmentation(row),
  }));
}

/** The window of the payload. */
export function windowOf(payload: Payload): Window {
  return {
    startPs: readNumber(payload, SCALARS.start_ps) ?? 0,
    endPs: readNumber(payload, SCALARS.end_ps) ?? 1,
  };
}

/**
 * The points as steps that fill the window: the level before it at its left edge, the last level up to its
 * right one.
 */
export function clamped(points: readonly Point[], window: Window): Point[] {
  const inside = points.map((point) =>
    point.ps < window.startPs ? { ...point, ps: window.startPs } : point,
  );
  const last = inside.at(-1);
  return last && last.ps < window.endPs ? [...inside, { ...last, ps: window.endPs }] : inside;
}

/** Events that fill less of the capture than this leave a chart mostly empty. */
const MOST_EMPTY = 0.1;
/** The part of the drawn window that is left for the level before the first event. */
const LEAD = 0.04;

/** The whole capture as it is drawn: from shortly before the first event, if nothing happens for long. */
export function drawnWindow(points: readonly Point[], window: Window): Window {
  const first = points[0]?.ps ?? 0;
  const length = window.endPs - window.startPs;
  if (first - window.startPs < MOST_EMPTY * length || first >= window.endPs) return window;
  return { startPs: Math.round(first - LEAD * (window.endPs - first)), endPs: window.endPs };
}

/** The level before the first event, at a moment before it; null: nothing was in use, or it is unknown. */
export function levelBefore(timeline: Timeline, points: readonly Point[], atPs: number): Point | null {
  const first = points[0];
  const size = timeline.length ? timeline.number('allocation_bytes')(0) : null;
  if (!first || size === null || atPs >= first.ps) return null;
  const added = timeline.text('activity')(0) === 'Deallocation' ? -Math.abs(size) : Math.abs(size);
  const heap = first.heap - added;
  if (heap < 0 || heap + first.stack === 0) return null;
  const free = first.free === null ? null : first.free + added;
  return { ...first, ps: atPs, heap, free, fragmentation: null };
}

/** Memories in the server's order, with their small histories. */
export function memoriesOf(payload: Payload): MemoryRow[] {
  const points = new Map<number, { ps: number; used: number }[]>();
  for (const { row, start_ps, used_bytes } of readTable(payload, TABLES.history).all()) {
    const list = points.get(row ?? -1) ?? [];
    list.push({ ps: start_ps ?? 0, used: used_bytes ?? 0 });
    points.set(row ?? -1, list);
  }
  return readTable(payload, TABLES.memories)
    .all()
    .map((memory, row) => ({
      row,
      host: memory.host,
      name: memory.memory,
      fullName: `${memory.host}/${memory.memory}`,
      peakBytes: memory.peak_bytes ?? 0,
      capacityBytes: memory.capacity_bytes,
      usedFraction: memory.used_fraction,
      floorRise: memory.floor_rise_bytes,
      points: points.get(row) ?? [],
    }));
}

/**
 * The outline of a small history as an SVG path in a box of 100 × 100, its highest point touching the top.
 */
export function sparkPath(points: readonly { ps: number; used: number }[], endPs: number): string {
  const top = Math.max(1, ...points.map(({ used }) => used));
  const pointOf = ({ ps, used }: { ps: number; used: number }): [string, string] => [
    ((100 * ps) / Math.max(1, endPs)).toFixed(2),
    (100 - (100 * used) / top).toFixed(2),
  ];
  const parts = points.map((point, i) => {
    const [x, y] = pointOf(point);
    return i === 0 ? `M${x} 100V${y}` : `H${x}V${y}`;
  });
  return parts.length ? `${parts.join('')}H100V100Z` : '';
}

/** Series hidden at first: free memory, if it would flatten all else. */
export function hiddenAtFirst(row: MemoryRow | undefined): Set<string> {
  return new Set(row && (row.usedFraction ?? 0) < 0.25 ? ['free'] : []);
}
