import { describe, expect, it } from 'vitest';
import { stepAt } from './step_row';

const steps = [
  [10, 20, '1'],
  [30, 20, '2'],
  [70, 5, '3'],
].map(([startPs, durationPs, label]) => ({
  startPs: Number(startPs),
  durationPs: Number(durationPs),
  label: String(label),
  note: '',
}));

describe('the row of steps', () => {
  it('knows the step at a time', () => {
    expect([0, 10, 29, 30, 49, 50, 69, 74, 75].map((timePs) => stepAt(steps, timePs)?.label ?? '')).toEqual([
      '',
      '1',
      '1',
      '2',
      '2',
      '',
      '',
      '3',
      '',
    ]);
    expect(stepAt([], 5)).toBeNull();
  });
});
