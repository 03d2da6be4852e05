import { describe, expect, it } from 'vitest';
import { counterText, scaleOf } from './counters';
import type { Track } from './model';

const counter = (minValue: number, maxValue: number, unit: string): Track => ({
  id: 1,
  host: '',
  section: '',
  name: 'c',
  kind: 'counter',
  nEvents: 2,
  nDepths: 1,
  isDerived: false,
  minValue,
  maxValue,
  unit,
});

describe('values of counters', () => {
  it('are scaled where the unit is, and written with any other', () => {
    expect(counterText(3 * 2 ** 30, 'bytes')).toBe('3.00\u00a0GiB');
    expect(counterText(55.5, '%')).toBe('55.5%');
    expect(counterText(1234, '')).toBe('1,234');
  });
  it("are at the chart's top and bottom, including zero", () => {
    expect(scaleOf(counter(10, 55.5, '%'))).toEqual({ top: '55.5%', bottom: '0' });
    expect(scaleOf(counter(-4, -1, 'W'))).toEqual({ top: '0\u00a0W', bottom: '-4.00\u00a0W' });
  });
});
