import { describe, expect, it } from 'vitest';
import type { TraceWindow } from './model';
import { WHOLE } from '../testing';
import {
  isComfortable,
  marginFor,
  MAX_WIDTH_PX,
  neighborsOf,
  planRequest,
  type VisibleWindow,
  willServe,
  Windows,
} from './windows';

describe('windows', () => {
  const wanted = (startPs: number, endPs: number, trackIds: number[] | null = null): VisibleWindow => ({
    view: { startPs, endPs },
    widthPx: 1000,
    durationPs: 1e6,
    trackIds,
    hasFlows: false,
  });
  const at = (
    startPs: number,
    endPs: number,
    psPerPx: number,
    more: Partial<TraceWindow> = {},
  ): TraceWindow => ({ ...WHOLE, startPs, endPs, psPerPx, ...more });

  it('requests a margin on both sides, within the trace and the widest picture', () => {
    expect(planRequest(wanted(4e5, 5e5))).toEqual({
      startPs: 3e5,
      endPs: 6e5,
      widthPx: 3000,
      trackIds: null,
      hasFlows: false,
    });
    expect(planRequest(wanted(0, 5e5))).toMatchObject({ startPs: 0, endPs: 1e6, widthPx: 2000 });
    expect(marginFor(100_000)).toBeGreaterThanOrEqual(0.1);
    expect(planRequest({ ...wanted(4e5, 5e5), widthPx: 5120 }).widthPx).toBeLessThanOrEqual(MAX_WIDTH_PX);
  });
  it.each([300, 1000, 1920, 3840, 7680])('needs no second request (%s px)', (widthPx) => {
    const ask = { ...wanted(4e5, 5e5), widthPx };
    const request = planRequest(ask);
    const answer = at(
      request.startPs as number,
      request.endPs as number,
      ((request.endPs as number) - (request.startPs as number)) / request.widthPx,
    );
    expect(isComfortable(answer, ask)).toBe(true);
    expect(willServe(request, ask)).toBe(true);
  });
  it('requests less margin where there are many boxes, and is content with it', () => {
    const dense = { ...wanted(4e5, 5e5), boxesPerPx: 30 };
    const request = planRequest(dense);
    expect(request.widthPx).toBe(1200);
    const answer = at(request.startPs as number, request.endPs as number, 100);
    expect(isComfortable(answer, dense)).toBe(true);
    // The screen itself is always covered.
    expect(planRequest({ ...dense, boxesPerPx: 1000 }).widthPx).toBe(1100);
    expect(planRequest({ ...dense, boxesPerPx: 2 }).widthPx).toBe(3000);
  });
  it('draws the sharp window, else the finest that covers the view, else the whole', () => {
    const windows = new Windows();
    const whole = at(0, 1e6, 1000);
    const middle = at(3e5, 6e5, 100);
    windows.add(whole, true);
    windows.add(middle, false);
    expect(windows.best(wanted(0, 1e6))).toBe(whole);
    expect(windows.best(wanted(4e5, 5e5))).toBe(middle);
    expect(windows.best(wanted(4e5, 4.1e5))).toBe(middle);
    expect(windows.best(wanted(5e5, 7e5))).toBe(whole);
  });
  it('needs no finer picture of a window in which nothing is merged', () => {
    expect(isComfortable(at(0, 1e6, 1000, { isExact: true }), wanted(4e5, 4.1e5))).toBe(true);
    expect(isComfortable(at(0, 1e6, 1000), wanted(4e5, 4.1e5))).toBe(false);
  });
  it('does not take a window of some tracks for one of all', () => {
    const some = at(0, 1e6, 1, { trackIds: new Set([1, 2]) });
    expect(isComfortable(some, wanted(4e5, 5e5))).toBe(false);
    expect(isComfortable(some, wanted(4e5, 5e5, [2]))).toBe(true);
    expect(isComfortable(some, wanted(4e5, 5e5, [2, 3]))).toBe(false);
  });
  it('forgets the oldest, never the whole', () => {
    const windows = new Windows();
    const whole = at(0, 1e6, 1000);
    const old = at(4e5, 5e5, 1);
    windows.add(whole, true);
    windows.add(old, false);
    for (let i = 0; i < 30; i++) windows.add(at(0, 1e5, 1), false);
    expect(windows.best(wanted(4.4e5, 4.5e5))).toBe(whole);
  });
});

describe('prefetched windows', () => {
  it('are closer, adjacent and wider, all within the trace', () => {
    const here: VisibleWindow = {
      view: { startPs: 0, endPs: 1e5 },
      widthPx: 1000,
      durationPs: 1e6,
      trackIds: null,
      hasFlows: false,
    };
    const views = neighborsOf(here, 5e4).map(({ view }) => [view.startPs, view.endPs]);
    expect(views[0]).toEqual([35000, 65000]);
    expect(views.slice(1, 3)).toEqual([
      [1e5, 2e5],
      [0, 1e5],
    ]);
    for (const [startPs, endPs] of views)
      expect((startPs as number) >= 0 && (endPs as number) <= 1e6).toBe(true);
  });
});
