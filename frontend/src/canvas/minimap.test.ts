import { describe, expect, it } from 'vitest';
import type { Boxes } from './boxes';
import { densityOf } from './minimap';

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
      rowFirst: Int32Array.of(0, 2, 3),
    };
    expect([...densityOf(boxes, [0], 100, 4)]).toEqual([1, 0.20000000298023224, 1, 0]);
    expect([...densityOf(boxes, [1], 100, 2)]).toEqual([1, 1]);
    expect([...densityOf(boxes, [], 100, 2)]).toEqual([0, 0]);
  });
});
