// @vitest-environment happy-dom
import { signal } from '@preact/signals';
import { describe, expect, it } from 'vitest';
import { keepApart, scrollTogether, viewOfBoth } from './beside';
import { Camera } from '../drawing/camera';
import type { Timeline } from '../state/timeline';

const TRACE_PS = 10_000_000;

/** As much of a timeline as the distance of two needs: a camera, and frames that are drawn when asked for. */
class Drawn {
  isDue = false;
  readonly listeners = new Set<() => void>();
  readonly camera = new Camera(
    () => TRACE_PS,
    () => {
      this.isDue = true;
    },
  );
  onFrame(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Draws until nothing is due; the number of frames. */
function settle(...drawn: Drawn[]): number {
  let n = 0;
  for (; n < 50 && drawn.some(({ isDue }) => isDue); n++)
    for (const each of drawn)
      if (each.isDue) {
        each.isDue = false;
        for (const listener of each.listeners) listener();
      }
  return n;
}

describe('two windows below each other', () => {
  const mark = (startPs: number, endPs: number) => ({
    startPs,
    endPs,
    trackIds: null,
    depths: null,
    name: '',
    note: '',
  });
  it('begin with both, a little before their starts', () => {
    expect(viewOfBoth(mark(1000, 1200), mark(5000, 5400))).toEqual({ startPs: 988, endPs: 1412 });
  });
  it('stay apart by the distance of their starts, whichever of them moves', () => {
    const [first, second] = [new Drawn(), new Drawn()];
    const stage = document.createElement('div');
    first.camera.set({ startPs: 900000, endPs: 1500000 });
    const stop = keepApart(first as unknown as Timeline, second as unknown as Timeline, stage, 4_000_000);
    settle(first, second);
    expect(second.camera.view).toEqual({ startPs: 4900000, endPs: 5500000 });
    stage.dispatchEvent(new Event('pointerenter'));
    second.camera.set({ startPs: 5000000, endPs: 5200000 });
    settle(first, second);
    expect(first.camera.view).toEqual({ startPs: 1000000, endPs: 1200000 });
    stage.dispatchEvent(new Event('pointerleave'));
    // Beyond the trace's end both stay aligned, and drawing comes to rest.
    first.camera.set({ startPs: 4000000, endPs: 7000000 });
    expect(settle(first, second)).toBeLessThan(10);
    expect(second.camera.view).toEqual({ startPs: 8000000, endPs: 11000000 });
    // Where the second has nothing to show at all, it stops at the edge.
    first.camera.set({ startPs: 8000000, endPs: 9000000 });
    expect(settle(first, second)).toBeLessThan(10);
    expect(second.camera.view).toEqual({ startPs: TRACE_PS - 1, endPs: TRACE_PS + 999_999 });
    stop();
    first.camera.set({ startPs: -500000, endPs: 500000 });
    settle(first, second);
    expect(first.camera.view).toEqual({ startPs: 0, endPs: 1000000 });
    expect(second.camera.view.startPs).toBe(TRACE_PS - 1);
  });

  it('scroll together, as far as the shorter one can', () => {
    const [first, second] = [new Scrolled(500), new Scrolled(300)];
    const stop = scrollTogether(first as unknown as Timeline, second as unknown as Timeline);
    first.scrollBy(120);
    expect([first.scrollPx, second.scrollPx]).toEqual([120, 120]);
    second.scrollBy(60);
    expect([first.scrollPx, second.scrollPx]).toEqual([180, 180]);
    first.scrollBy(250);
    expect([first.scrollPx, second.scrollPx]).toEqual([430, 300]);
    second.scrollBy(-100);
    expect([first.scrollPx, second.scrollPx]).toEqual([200, 200]);
    first.stack.scrollPins(15);
    expect(second.pinScrollPx.value).toBe(15);
    stop();
    first.scrollBy(10);
    expect(second.scrollPx).toBe(200);
  });
});

const due: HTMLElement[] = [];

/** As much of a timeline as scrolling needs; events of scrolling come after the position has changed. */
class Scrolled {
  readonly pinScrollPx = signal(0);
  readonly stack = {
    scrollPins: (px: number): void => {
      this.pinScrollPx.value += px;
    },
  };
  readonly scroller = document.createElement('div');
  private px = 0;
  constructor(most: number) {
    Object.defineProperty(this.scroller, 'scrollTop', {
      get: () => this.px,
      set: (px: number) => {
        const before = this.px;
        this.px = Math.min(Math.max(px, 0), most);
        if (this.px !== before) due.push(this.scroller);
      },
    });
  }
  get scrollPx(): number {
    return this.px;
  }
  scrollBy(px: number): void {
    this.scroller.scrollTop += px;
    for (let next = due.shift(); next; next = due.shift()) next.dispatchEvent(new Event('scroll'));
  }
}
