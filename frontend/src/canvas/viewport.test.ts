import { describe, expect, it } from 'vitest';
import {
  bringIntoView,
  clampViewport,
  MIN_SPAN_PS,
  minSpanPs,
  panBy,
  pxToTime,
  spanPs,
  timeToPx,
  zoomAt,
  zoomTo,
} from './viewport';

const TRACE = 1e12;
const VIEW = { startPs: 2e11, endPs: 4e11 };

describe('time and pixels', () => {
  it('are each other’s inverse', () => {
    expect(timeToPx(VIEW, 1000, 3e11)).toBe(500);
    expect(pxToTime(VIEW, 1000, 500)).toBe(3e11);
  });
});

describe('zoomAt', () => {
  it.each([0.5, 0.9, 1.5])('keeps the time under the pointer in place (factor %s)', (factor) => {
    const anchor = 2.5e11;
    const zoomed = zoomAt(VIEW, factor, anchor, TRACE);
    expect(spanPs(zoomed)).toBeCloseTo(2e11 * factor, -3);
    expect(timeToPx(zoomed, 1000, anchor)).toBeCloseTo(timeToPx(VIEW, 1000, anchor), 6);
  });
  it('ends at the whole trace and at the narrowest window', () => {
    expect(zoomAt(VIEW, 1e6, 3e11, TRACE)).toEqual({ startPs: 0, endPs: TRACE });
    expect(spanPs(zoomAt(VIEW, 1e-12, 3e11, TRACE))).toBe(MIN_SPAN_PS);
  });
  it('keeps the pointer’s time near the end of a two-hour trace, to the picosecond', () => {
    const late = 7.2e15;
    const view = { startPs: late - 1e6, endPs: late + 1e6 };
    const zoomed = zoomAt(view, 0.01, late, 9e15);
    expect(Math.abs(timeToPx(zoomed, 2000, late) - 1000)).toBeLessThan(1);
  });
});

describe('clampViewport', () => {
  it('moves a window back into the trace without changing its width', () => {
    expect(clampViewport({ startPs: -5e10, endPs: 5e10 }, TRACE)).toEqual({ startPs: 0, endPs: 1e11 });
    expect(panBy(VIEW, 9e11, TRACE)).toEqual({ startPs: 8e11, endPs: 1e12 });
  });
  it('survives nonsense', () => {
    expect(clampViewport({ startPs: Number.NaN, endPs: Number.NaN }, TRACE)).toEqual({
      startPs: 0,
      endPs: TRACE,
    });
    expect(spanPs(clampViewport({ startPs: 5, endPs: 2 }, TRACE))).toBe(MIN_SPAN_PS);
    expect(clampViewport({ startPs: 0, endPs: 0 }, 0)).toEqual({ startPs: 0, endPs: 1 });
  });
});

describe('looking at an event', () => {
  it('zooms to it with room on both sides', () => {
    expect(zoomTo(4e11, 1e11, TRACE)).toEqual({ startPs: 3.75e11, endPs: 5.25e11 });
  });
  it('moves only as far as needed', () => {
    expect(bringIntoView(VIEW, 2.5e11, 2.6e11, TRACE)).toBe(VIEW);
    expect(bringIntoView(VIEW, 1e11, 5e11, TRACE)).toBe(VIEW);
    expect(bringIntoView(VIEW, 5e11, 5.1e11, TRACE)).toEqual({ startPs: 3.3e11, endPs: 5.3e11 });
    expect(bringIntoView(VIEW, 1e11, 1.1e11, TRACE)).toEqual({ startPs: 0.8e11, endPs: 2.8e11 });
  });
});

describe('a trace of many hours', () => {
  const hours = (n: number): number => n * 3600e12;
  it('zooms until numbers have no more digits, well below a microsecond', () => {
    expect([1, hours(2), hours(3.3), hours(312), 2 ** 62].map(minSpanPs)).toEqual([
      1, 1000, 2000, 128_000, 1_024_000,
    ]);
    let view = { startPs: 0, endPs: hours(312) };
    for (let i = 0; i < 200; i++) view = zoomAt(view, 0.7, hours(311.7), hours(312));
    expect(spanPs(view)).toBe(128_000);
    expect(Math.abs(view.startPs + 64_000 - hours(311.7))).toBeLessThan(128_000);
  });
});
