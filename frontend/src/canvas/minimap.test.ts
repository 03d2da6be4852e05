import { describe, expect, it } from 'vitest';
import type { Boxes } from './boxes';
import { densityOf, grabAt, grabbed, layersOf } from './minimap';

describe('densityOf', () => {
  it('spreads boxes over the columns they touch and counts only the given rows', () => {
    const boxes: Boxes = {
      n: 3,
      startPs: Float64Array.of(0, 50, 0),
      durationPs: Float64Array.of(30, 25, 100),
      nameId: new Int32Array(3),
      eventId: new Float64Array(3),
      nMerged: new Float64Array(3).fill(1),
      names: ['a'],
      style: new Uint8Array(3),
      longestPs: new Float64Array(3),
      rowFirst: Int32Array.of(0, 2, 3),
    };
    expect([...densityOf(boxes, [0], 100, 4)]).toEqual([1, 0.20000000298023224, 1, 0]);
    expect([...densityOf(boxes, [1], 100, 2)]).toEqual([1, 1]);
    expect([...densityOf(boxes, [], 100, 2)]).toEqual([0, 0]);
  });
});

describe('the window in the minimap', () => {
  const view = { startPs: 200, endPs: 400 };
  it('is held by its edges, as a whole, or jumps', () => {
    expect([201, 300, 399, 700].map((x) => grabAt(view, 1000, x, 1000).part)).toEqual([
      'start',
      'window',
      'end',
      'outside',
    ]);
  });
  it('follows the hand', () => {
    const drag = (from: number, to: number): number[] =>
      Object.values(grabbed(grabAt(view, 1000, from, 1000), 1000, to, 1000));
    expect(drag(300, 350)).toEqual([250, 450]);
    expect(drag(200, 100)).toEqual([100, 400]);
    expect(drag(200, 500)).toEqual([400, 500]);
    expect(drag(400, 600)).toEqual([200, 600]);
    expect(drag(700, 700)).toEqual([600, 800]);
  });
  it('has a layer for devices and one for hosts', () => {
    const parts = [
      { isDevice: true, share: Float32Array.of(1, 0) },
      { isDevice: true, share: Float32Array.of(0, 0) },
      { isDevice: false, share: Float32Array.of(0.2, 0.4) },
    ];
    expect(layersOf(parts).map(({ isDevice, share }) => [isDevice, ...share])).toEqual([
      [true, 1, 0],
      [false, 0.5, 1],
    ]);
    expect(layersOf([])).toEqual([]);
  });
});
