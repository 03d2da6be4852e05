import { describe, expect, it } from 'vitest';
import { ticksOf } from './ticks';

const MS = 1e9;

describe('ticks', () => {
  it('are round values, at most as many as fit', () => {
    expect(ticksOf(0, 12.4 * MS, 7)).toEqual([0, 2, 4, 6, 8, 10, 12].map((tick) => tick * MS));
    expect(ticksOf(0, 1000, 4)).toEqual([0, 500, 1000]);
    expect(ticksOf(0, 900, 9)).toEqual([0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
    expect(ticksOf(0, 0, 5)).toEqual([]);
    expect(ticksOf(0, 100, 0)).toEqual([]);
  });

  it('begin with the first round value of an axis that does not begin at 0', () => {
    expect(ticksOf(11, 51, 5)).toEqual([20, 30, 40, 50]);
    expect(ticksOf(20, 61, 3)).toEqual([20, 40, 60]);
    expect(ticksOf(2.5 * MS, 98 * MS, 5)).toEqual([20, 40, 60, 80].map((tick) => tick * MS));
  });
});
