/** Which window of the trace to request, which of the loaded ones to draw, and which to drop. */

import { panBy, spanPs, zoomAt, type Viewport } from '../../../canvas/viewport';
import type { TraceWindow, WindowRequest } from './model';

/** The widest picture requested, in device pixels. */
export const MAX_WIDTH_PX = 4000;

/** Wider screens get a picture slightly coarser than a pixel rather than one without margins. */
const SHARP_WIDTH_PX = 3300;

/** A request is narrowed to about this many boxes (some 5 bytes each), as long as it covers the screen. */
const MAX_BOXES_ASKED = 36_000;

/** With more tracks than this, only those in sight are requested. */
export const ALL_TRACKS_MAX = 200;

/** A picture is good enough until it is this many times coarser than the screen. */
const COARSENESS = 1.3;

/** Windows kept in addition to the whole trace, and boxes in all of them (about 60 bytes each). */
const MAX_WINDOWS = 24;
const MAX_BOXES = 1_500_000;

export interface VisibleWindow {
  readonly view: Viewport;
  /** Device pixels of the canvas. */
  readonly widthPx: number;
  readonly durationPs: number;
  /** The tracks in sight; null: all. */
  readonly trackIds: readonly number[] | null;
  readonly hasFlows: boolean;
  /** Of the last answer: how many boxes a pixel of width brings. */
  readonly boxesPerPx?: number;
}

/**
 * The margin on either side of the window, in windows: as much as fits into MAX_WIDTH_PX and MAX_BOXES_ASKED,
 * up to one.
 */
export function marginFor(widthPx: number, boxesPerPx = 0): number {
  const mostPx = Math.min(MAX_WIDTH_PX, boxesPerPx > 0 ? MAX_BOXES_ASKED / boxesPerPx : MAX_WIDTH_PX);
  const least = boxesPerPx * widthPx > MAX_BOXES_ASKED ? 0.05 : 0.1;
  return Math.min(1, Math.max(least, (mostPx / Math.min(Math.max(widthPx, 1), SHARP_WIDTH_PX) - 1) / 2));
}

export function planRequest(visible: VisibleWindow): WindowRequest {
  const { view, widthPx, durationPs, trackIds, hasFlows } = visible;
  const margin = marginFor(widthPx, visible.boxesPerPx) * spanPs(view);
  const startPs = Math.max(0, Math.floor(view.startPs - margin));
  const endPs = Math.min(durationPs, Math.ceil(view.endPs + margin));
  const perPs = Math.min(widthPx, SHARP_WIDTH_PX) / spanPs(view);
  return {
    startPs,
    endPs,
    widthPx: Math.max(1, Math.min(MAX_WIDTH_PX, Math.round((endPs - startPs) * perPs))),
    trackIds,
    hasFlows,
  };
}

function covers(window: TraceWindow, from: number, to: number, trackIds: readonly number[] | null): boolean {
  if (window.startPs > from || window.endPs < to) return false;
  if (!window.trackIds) return true;
  return trackIds !== null && trackIds.every((id) => window.trackIds?.has(id));
}

function coarsestPsPerPx({ view, widthPx }: VisibleWindow): number {
  return (COARSENESS * spanPs(view)) / Math.min(widthPx, SHARP_WIDTH_PX);
}

function isSharp(window: TraceWindow, visible: VisibleWindow): boolean {
  return window.isExact || window.psPerPx <= coarsestPsPerPx(visible);
}

/** Sharp, and far enough from its edges: no request is needed. */
export function isComfortable(window: TraceWindow, visible: VisibleWindow): boolean {
  const room = 0.3 * marginFor(visible.widthPx, visible.boxesPerPx) * spanPs(visible.view);
  const from = Math.max(0, visible.view.startPs - room);
  const to = Math.min(visible.durationPs, visible.view.endPs + room);
  return (
    isSharp(window, visible) &&
    covers(window, from, to, visible.trackIds) &&
    (!visible.hasFlows || window.flows !== null)
  );
}

/** Whether the pending answer will show this view sharply. */
export function willServe(request: WindowRequest, visible: VisibleWindow): boolean {
  const { startPs, endPs, trackIds, widthPx } = request;
  if (startPs === null || endPs === null || startPs > visible.view.startPs || endPs < visible.view.endPs)
    return false;
  if (visible.hasFlows && !request.hasFlows) return false;
  if (trackIds && !visible.trackIds?.every((id) => trackIds.includes(id))) return false;
  return (endPs - startPs) / widthPx <= coarsestPsPerPx(visible);
}

/** Likely next views, likeliest first: closer to the pointer, onward, back, and out. */
export function neighborsOf(current: VisibleWindow, atPs: number): VisibleWindow[] {
  const { view, durationPs } = current;
  const span = spanPs(view);
  const views = [
    zoomAt(view, 0.3, atPs, durationPs),
    panBy(view, span, durationPs),
    panBy(view, -span, durationPs),
    zoomAt(view, 3.3, atPs, durationPs),
  ];
  return views.map((next) => ({ ...current, view: next }));
}

export class Windows {
  /** The whole trace, never dropped: for every view, there is something to draw. */
  private whole: TraceWindow | null = null;
  private readonly recent: TraceWindow[] = [];

  add(window: TraceWindow, isWhole: boolean): void {
    if (isWhole) this.whole = window;
    else this.recent.unshift(window);
    let nBoxes = this.recent.reduce((sum, { boxes }) => sum + boxes.n, 0);
    while (this.recent.length > 1 && (this.recent.length > MAX_WINDOWS || nBoxes > MAX_BOXES))
      nBoxes -= this.recent.pop()?.boxes.n ?? 0;
  }

  get overview(): TraceWindow | null {
    return this.whole;
  }

  /**
   * The window to draw: of the sharp ones that cover the view the one with the fewest boxes; else the finest;
   * else any.
   */
  best(visible: VisibleWindow, isUse = true): TraceWindow | null {
    const all = this.whole ? [...this.recent, this.whole] : this.recent;
    const covering = all.filter((window) =>
      covers(window, visible.view.startPs, visible.view.endPs, visible.trackIds),
    );
    const comfortable = covering.filter((window) => isComfortable(window, visible));
    const sharp =
      comfortable.length > 0 ? comfortable : covering.filter((window) => isSharp(window, visible));
    const chosen =
      sharp.length > 0
        ? sharp.reduce((a, b) => (b.boxes.n < a.boxes.n ? b : a))
        : covering.reduce<TraceWindow | null>((a, b) => (a && a.psPerPx <= b.psPerPx ? a : b), null);
    const drawable = chosen ?? this.whole;
    if (isUse) this.touch(drawable);
    return drawable;
  }

  private touch(window: TraceWindow | null): void {
    const index = window ? this.recent.indexOf(window) : -1;
    if (window && index > 0) {
      this.recent.splice(index, 1);
      this.recent.unshift(window);
    }
  }
}
