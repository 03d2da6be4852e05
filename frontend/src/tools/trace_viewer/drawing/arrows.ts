/** Arrows between events as they are drawn: which one is under the pointer, and where it leads. */

import { toScreen, type Arrow } from '../../../canvas/overlay';
import type { Frame } from '../../../canvas/renderer';

/** One end of an arrow; the name is empty where the picture does not show the event. */
export interface FlowEnd {
  readonly event: number;
  readonly track: number;
  readonly name: string;
}

export interface FlowArrow extends Arrow {
  readonly kind: string;
  readonly from: FlowEnd;
  readonly to: FlowEnd;
}

const REACH_PX = 4;
const N_PIECES = 24;

/** The distance of a point from the line between two others, squared. */
function apart(x: number, y: number, a: readonly [number, number], b: readonly [number, number]): number {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = dx * dx + dy * dy;
  const along = length > 0 ? Math.max(0, Math.min(1, ((x - a[0]) * dx + (y - a[1]) * dy) / length)) : 0;
  return (x - a[0] - along * dx) ** 2 + (y - a[1] - along * dy) ** 2;
}

/** The arrow under a point of the stage, drawn as `drawArrows` draws it; the selected event's first. */
export function arrowAt(arrows: readonly FlowArrow[], frame: Frame, x: number, y: number): FlowArrow | null {
  const perPs = frame.widthPx / (frame.endPs - frame.startPs);
  let best: FlowArrow | null = null;
  let least = REACH_PX ** 2;
  for (const arrow of arrows) {
    const [x1, x2] = [(arrow.fromPs - frame.startPs) * perPs, (arrow.toPs - frame.startPs) * perPs];
    const [y1, y2] = [toScreen(arrow.fromY, frame), toScreen(arrow.toY, frame)];
    const bend = Math.min(60, 14 + Math.abs(x2 - x1) / 2);
    if (x < Math.min(x1, x2 - bend) - REACH_PX || x > Math.max(x2, x1 + bend) + REACH_PX) continue;
    if (y < Math.min(y1, y2) - REACH_PX || y > Math.max(y1, y2) + REACH_PX) continue;
    let before: readonly [number, number] = [x1, y1];
    for (let piece = 1; piece <= N_PIECES; piece++) {
      const t = piece / N_PIECES;
      const [a, b, c, d] = [(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t ** 3];
      const next = [
        a * x1 + b * (x1 + bend) + c * (x2 - bend) + d * x2,
        (a + b) * y1 + (c + d) * y2,
      ] as const;
      const distance = apart(x, y, before, next) - (arrow.isOwn ? 1e-3 : 0);
      if (distance < least) [best, least] = [arrow, distance];
      before = next;
    }
  }
  return best;
}

/** From the selected event an arrow leads to its other end; from elsewhere to its effect. */
export function otherEnd(arrow: FlowArrow, selected: number | null): FlowEnd {
  return selected === arrow.to.event ? arrow.from : arrow.to;
}
