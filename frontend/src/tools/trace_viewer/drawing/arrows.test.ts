import { describe, expect, it } from 'vitest';
import type { Frame } from '../../../canvas/renderer';
import { arrowAt, otherEnd, type FlowArrow } from './arrows';

const FRAME = { widthPx: 1000, heightPx: 400, pixelRatio: 1, startPs: 0, endPs: 1000, scrollPx: 0 } as Frame;

const arrow = (from: number, to: number, at: readonly [number, number, number, number]): FlowArrow => ({
  fromPs: at[0],
  fromY: at[1],
  toPs: at[2],
  toY: at[3],
  isOwn: false,
  kind: 'launch',
  from: { event: from, track: 0, name: 'call' },
  to: { event: to, track: 1, name: 'kernel' },
});

describe('the arrow under the pointer', () => {
  const arrows = [arrow(1, 2, [100, 50, 300, 250]), arrow(3, 4, [600, 100, 600, 300])];
  it('is found at its ends and its middle, and not beside them', () => {
    for (const [x, y] of [
      [100, 50],
      [300, 250],
      [200, 150],
    ] as const)
      expect(arrowAt(arrows, FRAME, x, y)?.from.event).toBe(1);
    for (const [x, y] of [
      [200, 60],
      [90, 50],
      [310, 250],
      [450, 150],
    ] as const)
      expect(arrowAt(arrows, FRAME, x, y)).toBeNull();
  });
  it('bends: a vertical one leaves to the right and arrives from the left', () => {
    expect(arrowAt(arrows, FRAME, 604, 125)?.from.event).toBe(3);
    expect(arrowAt(arrows, FRAME, 590, 125)).toBeNull();
    expect(arrowAt(arrows, FRAME, 596, 275)?.from.event).toBe(3);
  });
  it('leads to the other end, from elsewhere to the effect', () => {
    const [first] = arrows as [FlowArrow, FlowArrow];
    expect([1, 2, null].map((selected) => otherEnd(first, selected).event)).toEqual([2, 1, 2]);
  });
});
