import { describe, expect, it } from 'vitest';
import { rangeOf, valueAt } from './areas';

const SERIES = { timePs: Float64Array.of(10, 20, 30), value: Float64Array.of(5, -2, 7) };

describe('counters', () => {
  it("range has zero in it and reaches the trace's least and largest", () => {
    expect(rangeOf(SERIES)).toEqual([-2, 7]);
    expect(rangeOf(SERIES, 3, 20)).toEqual([-2, 20]);
    expect(rangeOf(SERIES, -9, -1)).toEqual([-9, 7]);
    expect(rangeOf({ timePs: Float64Array.of(), value: Float64Array.of() })).toEqual([0, 1]);
  });
  it('holds a value until the next sample', () => {
    expect([9, 10, 19.9, 20, 99].map((at) => valueAt(SERIES, at))).toEqual([null, 5, 5, -2, 7]);
  });
});
