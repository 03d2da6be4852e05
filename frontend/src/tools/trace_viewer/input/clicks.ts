/** What a click on the stage does. */

import { STEP_ROW_PX } from '../../../canvas/overlay';
import { stepAt } from '../../../canvas/step_row';
import { otherEnd } from '../drawing/arrows';
import { goToEvent } from '../state/flows';
import type { Timeline } from '../state/timeline';

/** Whether a click adds to the selection: with Ctrl, on macOS with ⌘, where Ctrl opens a menu. */
export function isAdding(event: { readonly ctrlKey: boolean; readonly metaKey: boolean }): boolean {
  return /Macintosh/.test(navigator.userAgent) ? event.metaKey : event.ctrlKey;
}

/** Adds the event there to the selection, or removes it; elsewhere nothing happens. */
export function addAt(timeline: Timeline, x: number, y: number): void {
  const picked = timeline.find(x, y);
  if (picked) timeline.addToSelection(picked);
}

/**
 * Selects the event there alone; on the row of steps, marks the step; on an arrow, goes to its other end.
 */
export function clickAt(timeline: Timeline, x: number, y: number): void {
  const { frames } = timeline;
  const isStepRow = timeline.hasSteps && y < STEP_ROW_PX;
  const step = isStepRow ? stepAt(frames.scene.stepRow, timeline.camera.timeAt(x)) : null;
  if (step) {
    const endPs = step.startPs + step.durationPs;
    timeline.mark({ startPs: step.startPs, endPs, trackIds: null, depths: null });
    return;
  }
  const picked = timeline.find(x, y);
  const arrow = picked ? null : frames.arrowAt(x, y);
  if (!arrow) {
    timeline.selectSeveral([]);
    timeline.select(picked);
    return;
  }
  const { event } = otherEnd(arrow, timeline.selected.value?.event ?? null);
  void goToEvent(timeline, event).catch((error: unknown) => {
    timeline.loader.refusal.value = error;
  });
}
