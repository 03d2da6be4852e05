/**
 * Counters as area charts: values over time become one path per counter, made once per window; a frame only
 * moves and stretches it.
 *
 *   value   ___        held until the next sample
 *       ___|   |__
 */

import type { Frame, Band } from './renderer';

export interface Series {
  readonly timePs: Float64Array;
  readonly value: Float64Array;
}

/** A path over x: 0–1 of its time range, y: 0 (top) – 1 (zero line). */
export interface Area {
  readonly y: number;
  readonly height: number;
  readonly startPs: number;
  readonly endPs: number;
  readonly path: Path2D;
}

/**
 * The smallest and largest value that the chart's height represents: it always includes zero and all of
 * `least` to `most`.
 */
export function rangeOf({ value }: Series, least = 0, most = 0): readonly [number, number] {
  let low = Math.min(0, least);
  let high = Math.max(0, most);
  for (const each of value) {
    if (each < low) low = each;
    if (each > high) high = each;
  }
  return [low, high > low ? high : low + 1];
}

export function areaOf(
  series: Series,
  place: { y: number; height: number },
  window: { startPs: number; endPs: number },
  least: number,
  most: number,
): Area {
  const [low, high] = rangeOf(series, least, most);
  const span = Math.max(window.endPs - window.startPs, 1);
  const x = (timePs: number): number => (timePs - window.startPs) / span;
  const y = (value: number): number => (high - value) / (high - low);
  const path = new Path2D();
  const n = series.timePs.length;
  if (n > 0) {
    path.moveTo(x(series.timePs[0] as number), y(0));
    for (let i = 0; i < n; i++) {
      const height = y(series.value[i] as number);
      path.lineTo(x(series.timePs[i] as number), height);
      path.lineTo(
        i + 1 < n ? x(series.timePs[i + 1] as number) : Math.max(1, x(series.timePs[i] as number)),
        height,
      );
    }
    path.lineTo(Math.max(1, x(series.timePs[n - 1] as number)), y(0));
    path.closePath();
  }
  return { ...place, startPs: window.startPs, endPs: window.endPs, path };
}

/** The value at a time: that of the last sample before it; null: there is none. */
export function valueAt({ timePs, value }: Series, atPs: number): number | null {
  let lo = 0;
  let hi = timePs.length;
  while (lo < hi) {
    const middle = (lo + hi) >>> 1;
    if ((timePs[middle] as number) <= atPs) lo = middle + 1;
    else hi = middle;
  }
  return lo > 0 ? (value[lo - 1] as number) : null;
}

export function drawAreas(
  context: CanvasRenderingContext2D,
  areas: readonly Area[],
  frame: Frame,
  band: Band,
  fill: string,
): void {
  const perPs = frame.widthPx / (frame.endPs - frame.startPs);
  context.fillStyle = fill;
  for (const { y, height, startPs, endPs, path } of areas) {
    const top = y - band.scrollPx;
    if (top > band.bottomPx || top + height < band.topPx) continue;
    context.save();
    context.transform(
      Math.max(endPs - startPs, 1) * perPs,
      0,
      0,
      height,
      (startPs - frame.startPs) * perPs,
      top,
    );
    context.fill(path);
    context.restore();
  }
}
