/**
 * From an event to the next, the previous, the enclosing one and the first within. If the picture is exact
 * there, it supplies the answer; where boxes are merged the server does, so that the walk misses no event.
 */

import { readTable } from '../../../api/declared';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import { decodeDetails, eventOf } from '../data/details_model';
import { decodeWindow, requestParams, type TraceWindow, type WindowRequest } from '../data/model';
import {
  firstIn,
  neighbor,
  pickedEvent,
  rowOf,
  pickedAt,
  type Direction,
  type Picked,
} from '../drawing/picking';
import type { Timeline } from './timeline';

/**
 * A merged box separates when it fills this many pixels; 4000³ pixels are more than any trace has
 * picoseconds.
 */
const APART_PX = 4000;
const MAX_ROUNDS = 4;

/** The first event of a merged box; an exact box is its own event. */
async function firstOf(timeline: Timeline, picked: Picked): Promise<Picked> {
  let current = picked;
  for (let round = 0; round < MAX_ROUNDS && current.nMerged > 1; round++) {
    const endPs = Math.ceil(current.startPs + Math.max(current.durationPs, 1));
    const request: WindowRequest = {
      startPs: Math.floor(current.startPs),
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
    current = pickedAt(window, row, index);
  }
  return current;
}

const ON_SERVER = { left: 'previous', right: 'next', down: 'within' } as const;

async function adjacentOnServer(
  timeline: Timeline,
  from: Picked,
  direction: keyof typeof ON_SERVER,
): Promise<Picked | null> {
  const payload = await timeline.ask('neighbour', {
    event: String(from.event),
    direction: ON_SERVER[direction],
  });
  const row = readTable(payload, TRACE_VIEWER.neighbour.tables.neighbour).all()[0];
  return row ? pickedEvent(eventOf(row, from.track), row.depth ?? from.depth) : null;
}

/** Exact in this window: both the box itself and its neighbor. */
function isExactIn(window: TraceWindow, from: Picked, adjacent: Picked | null): boolean {
  const row = rowOf(window, from.track, from.depth);
  if (row < 0 || !adjacent || adjacent.nMerged > 1 || from.nMerged > 1) return false;
  const { rowFirst, eventId, nMerged } = window.boxes;
  for (let i = rowFirst[row] as number; i < (rowFirst[row + 1] as number); i++)
    if (eventId[i] === from.event) return nMerged[i] === 1;
  return false;
}

async function beside(timeline: Timeline, from: Picked, direction: 'left' | 'right'): Promise<void> {
  const { window } = timeline;
  const shown = window && neighbor(window, from, direction);
  if (window && shown && isExactIn(window, from, shown)) {
    timeline.reveal(shown);
    return;
  }
  try {
    const answer = await adjacentOnServer(timeline, from, direction);
    if (answer) timeline.reveal(answer);
  } catch (error) {
    // Fall back to the next box.
    const next = shown ?? (timeline.overview && neighbor(timeline.overview, from, direction));
    if (next) timeline.reveal(next);
    else timeline.loader.refusal.value = error;
  }
}

async function around(timeline: Timeline, from: Picked): Promise<void> {
  const enclosing = timeline.window && neighbor(timeline.window, from, 'up');
  if (
    enclosing &&
    enclosing.nMerged === 1 &&
    enclosing.startPs <= from.startPs &&
    enclosing.startPs + enclosing.durationPs >= from.startPs + from.durationPs
  ) {
    timeline.reveal(enclosing);
    return;
  }
  const { ancestors } = decodeDetails(await timeline.ask('event', { event: String(from.event) }));
  const parent = ancestors[0];
  if (parent) timeline.reveal(pickedEvent({ ...parent, track: from.track }, Math.max(0, from.depth - 1)));
}

/** The first event within. A window that begins after the event's start does not show it. */
async function within(timeline: Timeline, from: Picked): Promise<void> {
  const { window } = timeline;
  const shown = window && window.startPs <= from.startPs ? neighbor(window, from, 'down') : null;
  const isFirst = window && shown && shown.startPs >= from.startPs && isExactIn(window, from, shown);
  const inner = isFirst ? shown : await adjacentOnServer(timeline, from, 'down');
  if (inner) timeline.reveal(inner);
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
