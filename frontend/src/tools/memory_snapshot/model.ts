/** The allocator's history as steps of a chart. Pure. */
import { readNumber, type RowsOf } from '../../api/declared';
import { MEMORY_SNAPSHOT } from '../../api/tables/memory_snapshot';
import type { Payload } from '../../api/types';
import type { Window } from '../time_window';

export const { tables: TABLES, scalars: SCALARS } = MEMORY_SNAPSHOT.page;

export type Timeline = RowsOf<typeof TABLES.timeline>;

/** The levels after an event; `row` of the table. */
export interface Point {
  row: number;
  ps: number;
  /** In use, without what waits for a stream. */
  used: number;
  pending: number;
  held: number;
}

/** The event that failed to allocate, as the server names it. */
const OUT_OF_MEMORY = 'out of memory';

export function pointsOf(timeline: Timeline): Point[] {
  const [ps, used] = [timeline.number('start_ps'), timeline.number('used_bytes')];
  const [pending, held] = [timeline.number('pending_bytes'), timeline.number('reserved_bytes')];
  return Array.from({ length: timeline.length }, (_, row) => ({
    row,
    ps: ps(row) ?? 0,
    used: Math.max(0, (used(row) ?? 0) - (pending(row) ?? 0)),
    pending: pending(row) ?? 0,
    held: held(row) ?? 0,
  }));
}

/** The points in a window: the level before it at its left edge, the last level up to its right one. */
export function filling(points: readonly Point[], { startPs, endPs }: Window): Point[] {
  const inside = points.map((point) => (point.ps < startPs ? { ...point, ps: startPs } : point));
  const last = inside.at(-1);
  return last && last.ps < endPs ? [...inside, { ...last, ps: endPs }] : inside;
}

export function windowOf(payload: Payload): Window {
  return {
    startPs: readNumber(payload, SCALARS.start_ps) ?? 0,
    endPs: readNumber(payload, SCALARS.end_ps) ?? 1,
  };
}

/** Times of the failed allocations that are drawn. */
export function failuresOf(timeline: Timeline): number[] {
  const [ps, action] = [timeline.number('start_ps'), timeline.text('action')];
  return Array.from({ length: timeline.length }, (_, row) => row)
    .filter((row) => action(row) === OUT_OF_MEMORY)
    .map((row) => ps(row) ?? 0);
}
