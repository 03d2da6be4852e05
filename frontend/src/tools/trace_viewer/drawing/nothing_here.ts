/** If the tracks in sight show nothing in the window: where the next events are. */

import { firstAfter } from '../../../canvas/boxes';
import type { Viewport } from '../../../canvas/viewport';
import type { Layout } from './layout';
import type { TraceWindow } from '../data/model';
import { pickedAt, type Picked } from './picking';

export interface Elsewhere {
  readonly side: 'left' | 'right' | 'up' | 'down';
  readonly picked: Picked;
  /** Distance from the window; 0 if it is within. */
  readonly gapPs: number;
}

interface RowSpan {
  readonly row: number;
  readonly first: number;
  readonly end: number;
}

function rowsOf(window: TraceWindow, layout: Layout): RowSpan[] {
  const spans: RowSpan[] = [];
  for (let row = 0; row < window.rowTrack.length; row++) {
    const place = layout.placeOfTrack.get(window.rowTrack[row] as number);
    const [first, end] = [window.boxes.rowFirst[row] as number, window.boxes.rowFirst[row + 1] as number];
    if (place && end > first && (window.rowDepth[row] as number) < place.nRows)
      spans.push({ row, first, end });
  }
  return spans;
}

function endOf({ boxes }: TraceWindow, index: number): number {
  return (boxes.startPs[index] as number) + (boxes.durationPs[index] as number);
}

/** The last box of the row that begins before the view's end, if it reaches into the view; −1: none does. */
function boxWithin(window: TraceWindow, { first, end }: RowSpan, view: Viewport): number {
  const index = firstAfter(window.boxes.startPs, first, end, view.endPs) - 1;
  return index >= first &&
    (endOf(window, index) > view.startPs || (window.boxes.startPs[index] as number) >= view.startPs)
    ? index
    : -1;
}

/** The nearest boxes in time, of the whole trace: before the view and after it. */
function beside(whole: TraceWindow, layout: Layout, view: Viewport): Elsewhere | null {
  let best: { gap: number; row: number; index: number; side: 'left' | 'right' } | null = null;
  for (const { row, first, end } of rowsOf(whole, layout)) {
    const after = firstAfter(whole.boxes.startPs, first, end, view.startPs);
    for (const [index, side] of [
      [after - 1, 'left'],
      [after, 'right'],
    ] as const) {
      if (index < first || index >= end) continue;
      const gap =
        side === 'left'
          ? view.startPs - endOf(whole, index)
          : (whole.boxes.startPs[index] as number) - view.endPs;
      if (!best || gap < best.gap) best = { gap, row, index, side };
    }
  }
  return best && { side: best.side, picked: pickedAt(whole, best.row, best.index), gapPs: best.gap };
}

/** null: something is in sight, or there are no events. `inSight`: ids of tracks. */
export function elsewhere(
  window: TraceWindow,
  whole: TraceWindow,
  layout: Layout,
  view: Viewport,
  inSight: ReadonlySet<number>,
): Elsewhere | null {
  let best: { gap: number; elsewhere: Elsewhere } | null = null;
  const placesInSight = [...inSight]
    .flatMap((id) => layout.placeOfTrack.get(id) ?? [])
    .filter(({ isPinned }) => !isPinned);
  const [topPx, bottomPx] = [
    Math.min(...placesInSight.map(({ y }) => y)),
    Math.max(...placesInSight.map(({ y, height }) => y + height)),
  ];
  for (const span of rowsOf(window, layout)) {
    const index = boxWithin(window, span, view);
    if (index < 0) continue;
    const track = window.rowTrack[span.row] as number;
    if (inSight.has(track)) return null;
    const place = layout.placeOfTrack.get(track);
    if (!place) continue;
    const side = place.y < topPx ? 'up' : 'down';
    const gap = side === 'up' ? topPx - place.y : place.y - bottomPx;
    if (!best || gap < best.gap)
      best = { gap, elsewhere: { side, picked: pickedAt(window, span.row, index), gapPs: 0 } };
  }
  return best ? best.elsewhere : beside(whole, layout, view);
}
