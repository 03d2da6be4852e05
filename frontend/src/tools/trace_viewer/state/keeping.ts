/** Makes a mark of what is selected, and goes to one. */

import { zoomTo } from '../../../canvas/viewport';
import { isInstant, type Mark } from './marks';
import type { Timeline } from './timeline';

/** The marked interval, else the selected event, else the window; events without duration are instants. */
function candidate(timeline: Timeline): Mark {
  const { marked, selected, camera } = timeline;
  if (marked.value) return { ...marked.value, name: '', note: '' };
  const whole = { trackIds: null, depths: null, note: '' };
  const event = selected.value;
  if (event)
    return { ...whole, startPs: event.startPs, endPs: event.startPs + event.durationPs, name: event.name };
  const { startPs, endPs } = camera.view;
  return { ...whole, startPs: Math.floor(startPs), endPs: Math.ceil(endPs), name: '' };
}

/** Keeps it as a mark with a letter, whose name can be typed at once. */
export function keepMark(timeline: Timeline): void {
  const { marks } = timeline;
  const index = marks.add(candidate(timeline));
  marks.isOpen.value = true;
  marks.naming.value = index < 0 ? null : index;
}

/** An interval becomes the marked one, so that its totals, and files of it, are at hand. */
export function goToMark(timeline: Timeline, mark: Mark): void {
  const { startPs, endPs, trackIds, depths } = mark;
  if (!isInstant(mark)) timeline.mark({ startPs, endPs, trackIds, depths });
  const spanPs = timeline.camera.view.endPs - timeline.camera.view.startPs;
  const around = isInstant(mark)
    ? { startPs: startPs - spanPs / 2, endPs: startPs + spanPs / 2 }
    : zoomTo(startPs, endPs - startPs, timeline.durationPs, 0.05);
  timeline.camera.leap(around);
}
