/** What a click on the stage does. */

import { STEP_ROW_PX } from '../../canvas/overlay';
import { stepAt } from '../../canvas/step_row';
import { goToEvent, otherEnd } from './flows';
import type { Timeline } from './timeline';

/** Selects the event there; on the row of steps, marks the step; on an arrow, goes to its other end. */
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
    timeline.select(picked);
    return;
  }
  const { event } = otherEnd(arrow, timeline.selected.value?.event ?? null);
  void goToEvent(timeline, event).catch((error: unknown) => {
    timeline.loader.refusal.value = error;
  });
}
