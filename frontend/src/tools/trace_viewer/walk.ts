/**
 * From an event to the next, the previous, the enclosing one and the first within. If the picture is exact
 * there, it supplies the answer; where boxes are merged the server is asked, so that the walk misses no
 * event.
 */

import { readTable } from '../../api/declared';
import { TRACE_VIEWER } from '../../api/tables/trace_viewer';
import { decodeDetails, eventOf } from './details_model';
import { decodeWindow, requestParams, type TraceWindow, type WindowRequest } from './model';
import { firstIn, neighbour, pickedEvent, rowOf, pickedAt, type Direction, type Picked } from './picking';
import type { Timeline } from './timeline';

/**
 * A merged box separates when it fills this many pixels; 4000³ pixels are more than any trace has
 * picoseconds.
 */
const APART_PX = 4000;
const MAX_ROUNDS = 4;

/** The first event of a merged box; an exact box is its own event. */
async function firstOf(timeline: Timeline, picked: Picked): Promise<Picked> {
  let found = picked;
  for (let round = 0; round < MAX_ROUNDS && found.nMerged > 1; round++) {
    const endPs = Math.ceil(found.startPs + Math.max(found.durationPs, 1));
    const request: WindowRequest = {
      startPs: Math.floor(found.startPs),
      endPs,
      widthPx: APART_PX,
      trackIds: [picked.track],
      hasFlows: false,
    };
    const window = decodeWindow(await timeline.ask('', requestParams(request)), request);
    const row = rowOf(window, picked.track, picked.depth);
    if (row < 0) break;
    let index = window.boxes.rowFirst[row] as number;
    // The first box may be a longer event that began earlier.
    while (
      index + 1 < (window.boxes.rowFirst[row + 1] as number) &&
      (window.boxes.startPs[index] as number) < (request.startPs as number)
    )
      index++;
    found = pickedAt(window, row, index);
  }
  return found;
}

async function besideOnServer(
  timeline: Timeline,
  from: Picked,
  direction: Direction,
): Promise<Picked | null> {
  const payload = await timeline.ask('neighbour', {
    event: String(from.event),
    direction: direction === 'left' ? 'previous' : 'next',
  });
  const found = readTable(payload, TRACE_VIEWER.neighbour.tables.neighbour).all()[0];
  return found ? pickedEvent(eventOf(found, from.track), found.depth ?? from.depth) : null;
}

/** Exact in this window: both the box itself and its neighbor. */
function isExactIn(window: TraceWindow, from: Picked, found: Picked | null): boolean {
  const row = rowOf(window, from.track, from.depth);
  if (row < 0 || !found || found.nMerged > 1 || from.nMerged > 1) return false;
  const { rowFirst, eventId, nMerged } = window.boxes;
  for (let i = rowFirst[row] as number; i < (rowFirst[row + 1] as number); i++)
    if (eventId[i] === from.event) return nMerged[i] === 1;
  return false;
}

async function beside(timeline: Timeline, from: Picked, direction: 'left' | 'right'): Promise<void> {
  const { window } = timeline;
  const near = window && neighbour(window, from, direction);
  if (window && near && isExactIn(window, from, near)) {
    timeline.reveal(near);
    return;
  }
  try {
    const found = await besideOnServer(timeline, from, direction);
    if (found) timeline.reveal(found);
  } catch (error) {
    // Fall back to the next box.
    const next = near ?? (timeline.overview && neighbour(timeline.overview, from, direction));
    if (next) timeline.reveal(next);
    else timeline.loader.refusal.value = error;
  }
}

async function around(timeline: Timeline, from: Picked): Promise<void> {
  const near = timeline.window && neighbour(timeline.window, from, 'up');
  if (
    near &&
    near.nMerged === 1 &&
    near.startPs <= from.startPs &&
    near.startPs + near.durationPs >= from.startPs + from.durationPs
  ) {
    timeline.reveal(near);
    return;
  }
  const { ancestors } = decodeDetails(await timeline.ask('event', { event: String(from.event) }));
  const parent = ancestors[0];
  if (parent) timeline.reveal(pickedEvent({ ...parent, track: from.track }, Math.max(0, from.depth - 1)));
}

async function within(timeline: Timeline, from: Picked): Promise<void> {
  const near = timeline.window && neighbour(timeline.window, from, 'down');
  if (near) timeline.reveal(await firstOf(timeline, near));
}

/**
 * Selects the neighbor in that direction, or with nothing selected the first event in view; false: there is
 * nothing to select.
 */
export function walk(timeline: Timeline, direction: Direction): boolean {
  const from = timeline.selected.value;
  if (!from) {
    const { startPs, endPs } = timeline.camera.view;
    const first =
      timeline.window && firstIn(timeline.window, startPs, endPs, timeline.layout.value.placeOfTrack);
    if (first)
      void firstOf(timeline, first).then((event) => {
        timeline.reveal(event);
      });
    return first !== null;
  }
  const go =
    direction === 'up'
      ? around
      : direction === 'down'
        ? within
        : (t: Timeline, p: Picked) => beside(t, p, direction);
  void go(timeline, from).catch((error: unknown) => {
    timeline.loader.refusal.value = error;
  });
  return true;
}
