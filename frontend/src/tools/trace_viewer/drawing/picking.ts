/** Finds a box from a point on the screen, or from a box and a direction. */

import { boxAt, firstAfter, isDiamond, rowAt, type RowPlaces } from '../../../canvas/boxes';
import type { EventRef } from '../data/details_model';
import type { TraceWindow } from '../data/model';

/** A box as the page refers to it: enough to outline it, to name it and to request its details. */
export interface Picked extends EventRef {
  readonly nMerged: number;
  /** The longest of the merged events; otherwise the event's own duration. */
  readonly longestPs: number;
  readonly depth: number;
}

/** An event that was not picked from the drawing. */
export function pickedEvent(event: EventRef, depth: number): Picked {
  return { ...event, nMerged: 1, longestPs: event.durationPs, depth };
}

export type Direction = 'left' | 'right' | 'up' | 'down';

export function pickedAt(window: TraceWindow, row: number, index: number): Picked {
  const { boxes } = window;
  return {
    event: boxes.eventId[index] as number,
    name: boxes.names[boxes.nameId[index] as number] ?? '',
    startPs: boxes.startPs[index] as number,
    durationPs: boxes.durationPs[index] as number,
    nMerged: boxes.nMerged[index] as number,
    longestPs: boxes.longestPs[index] as number,
    track: window.rowTrack[row] as number,
    depth: window.rowDepth[row] as number,
  };
}

/** How far from a box, and from the middle of an instant's diamond, the pointer still hits it. */
export interface Reach {
  readonly slackPs: number;
  readonly diamondPs: number;
}

export function pick(
  window: TraceWindow,
  places: RowPlaces,
  timePs: number,
  contentY: number,
  reach: Reach,
): Picked | null {
  const row = rowAt(places, contentY);
  const diamondPs = row >= 0 && isDiamond(places.height[row] as number) ? reach.diamondPs : 0;
  const index = row < 0 ? -1 : boxAt(window.boxes, row, timePs, reach.slackPs, diamondPs);
  return index < 0 ? null : pickedAt(window, row, index);
}

export function rowOf(window: TraceWindow, track: number, depth: number): number {
  for (let row = 0; row < window.rowTrack.length; row++) {
    if (window.rowTrack[row] === track && window.rowDepth[row] === depth) return row;
  }
  return -1;
}

/** The first box that begins in the view, of the topmost row that has one; null: there is none. */
export function firstIn(
  window: TraceWindow,
  startPs: number,
  endPs: number,
  places: ReadonlyMap<number, { readonly y: number }>,
): Picked | null {
  const yOf = (row: number): number => places.get(window.rowTrack[row] as number)?.y ?? Infinity;
  const rows = [...window.rowTrack.keys()]
    .filter((row) => yOf(row) < Infinity)
    .sort((a, b) => yOf(a) - yOf(b) || a - b);
  for (const row of rows) {
    const lo = window.boxes.rowFirst[row] as number;
    const hi = window.boxes.rowFirst[row + 1] as number;
    let index = firstAfter(window.boxes.startPs, lo, hi, startPs);
    if (index > lo && window.boxes.startPs[index - 1] === startPs) index--;
    if (index < hi && (window.boxes.startPs[index] as number) < endPs) return pickedAt(window, row, index);
  }
  return null;
}

function reaches({ boxes }: TraceWindow, index: number, timePs: number): boolean {
  const startPs = boxes.startPs[index] as number;
  const isMerged = (boxes.nMerged[index] as number) > 1;
  return startPs === timePs || (isMerged && startPs + (boxes.durationPs[index] as number) > timePs);
}

/**
 * The previous or next box of the row, the box around it, or the first box within it; null: there is none.
 */
export function neighbor(window: TraceWindow, from: Picked, direction: Direction): Picked | null {
  const step = direction === 'up' ? -1 : direction === 'down' ? 1 : 0;
  const row = rowOf(window, from.track, from.depth + step);
  if (row < 0) return null;
  const { startPs, rowFirst } = window.boxes;
  const lo = rowFirst[row] as number;
  const hi = rowFirst[row + 1] as number;
  const after = firstAfter(startPs, lo, hi, from.startPs);
  let index = after;
  if (direction === 'up') index = after - 1;
  if (direction === 'left')
    for (index = after - 1; index >= lo && (startPs[index] as number) >= from.startPs;) index--;
  if (direction === 'down') {
    const before = after - 1;
    // A merged box may begin left of the event and hold events within it.
    if (before >= lo && reaches(window, before, from.startPs)) index = before;
    if (index < hi && (startPs[index] as number) >= from.startPs + from.durationPs) return null;
  }
  return index < lo || index >= hi ? null : pickedAt(window, row, index);
}

/**
 * The depth at which a window shows an event that is running at `timePs` or ends then; null: it is not shown.
 */
export function depthOf(window: TraceWindow, event: number, track: number, timePs: number): number | null {
  for (let row = 0; row < window.rowTrack.length; row++) {
    if (window.rowTrack[row] !== track) continue;
    for (const atPs of [timePs, timePs - 1]) {
      const index = boxAt(window.boxes, row, atPs, 0);
      if (index >= 0 && window.boxes.eventId[index] === event) return window.rowDepth[row] as number;
    }
  }
  return null;
}
