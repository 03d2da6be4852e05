/**
 * The visible time range, and the arithmetic between picoseconds and pixels.
 *
 * Picoseconds stay float64 here (exact to 2^53, 2 h 30 min; within 1 ns up to 2^63, 106 days); only what goes to
 * the GPU is rebased and rounded to float32.
 * Every function returns a new window; none animates.
 */

export interface Viewport {
  readonly startPs: number;
  readonly endPs: number;
}

/** 1 ns across the whole screen: a 1 ps event is still more than a pixel wide. */
export const MIN_SPAN_PS = 1000;

/** The narrowest window of a trace: of long ones, wide enough for the numbers' precision at its end. */
export function minSpanPs(durationPs: number): number {
  const precisionPs = Math.max(1, 2 ** (Math.floor(Math.log2(Math.max(durationPs, 1))) - 52));
  return Math.min(MIN_SPAN_PS * precisionPs, Math.max(durationPs, 1));
}

export function spanPs(view: Viewport): number {
  return view.endPs - view.startPs;
}

export function pxPerPs(view: Viewport, widthPx: number): number {
  return widthPx / Math.max(spanPs(view), Number.MIN_VALUE);
}

export function timeToPx(view: Viewport, widthPx: number, timePs: number): number {
  return (timePs - view.startPs) * pxPerPs(view, widthPx);
}

export function pxToTime(view: Viewport, widthPx: number, px: number): number {
  return view.startPs + (px / Math.max(widthPx, 1)) * spanPs(view);
}

/** The window moved and, if it is too wide or too narrow, resized to fit within [0, durationPs]. */
export function clampViewport(view: Viewport, durationPs: number): Viewport {
  const full = Math.max(durationPs, 1);
  const narrowest = minSpanPs(full);
  const start = Number.isFinite(view.startPs) ? view.startPs : 0;
  const end = Number.isFinite(view.endPs) ? view.endPs : full;
  const span = Math.min(Math.max(end - start, narrowest), full);
  const middle = (start + end) / 2;
  const from = end - start === span ? start : middle - span / 2;
  const startPs = Math.min(Math.max(from, 0), full - span);
  return { startPs, endPs: startPs + span };
}

/**
 * The window `factor` times as wide; `anchorPs` stays at the same pixel (unless the trace's ends are in the
 * way).
 */
export function zoomAt(view: Viewport, factor: number, anchorPs: number, durationPs: number): Viewport {
  const full = Math.max(durationPs, 1);
  const span = spanPs(view);
  const newSpan = Math.min(Math.max(span * factor, minSpanPs(full)), full);
  const share = span > 0 ? (anchorPs - view.startPs) / span : 0.5;
  const startPs = anchorPs - share * newSpan;
  return clampViewport({ startPs, endPs: startPs + newSpan }, durationPs);
}

export function panBy(view: Viewport, deltaPs: number, durationPs: number): Viewport {
  return clampViewport({ startPs: view.startPs + deltaPs, endPs: view.endPs + deltaPs }, durationPs);
}

/** The window around one event, with `margin` of its length free on either side. */
export function zoomTo(
  startPs: number,
  durationPs: number,
  traceDurationPs: number,
  margin = 0.25,
): Viewport {
  const length = Math.max(durationPs, 1);
  return clampViewport(
    { startPs: startPs - margin * length, endPs: startPs + length * (1 + margin) },
    traceDurationPs,
  );
}

/**
 * The window moved as little as needed to show [startPs, endPs]; an event longer than the window shows its
 * beginning.
 */
export function bringIntoView(view: Viewport, startPs: number, endPs: number, durationPs: number): Viewport {
  const span = spanPs(view);
  const isShown = startPs >= view.startPs && endPs <= view.endPs;
  const isSpanning = startPs <= view.startPs && endPs >= view.endPs;
  if (isShown || isSpanning) return view;
  const room = 0.1 * span;
  if (endPs - startPs > span - 2 * room) return panBy(view, startPs - room - view.startPs, durationPs);
  const delta = startPs < view.startPs ? startPs - room - view.startPs : endPs + room - view.endPs;
  return panBy(view, delta, durationPs);
}

export function isSameViewport(a: Viewport, b: Viewport): boolean {
  return a.startPs === b.startPs && a.endPs === b.endPs;
}
