import { describe, expect, it } from 'vitest';
import { seriesOf, stepNames } from './steps';
import { tableOf } from './testing';

describe('the series of steps', () => {
  it('stacks the parts that occur, device compute lowest', () => {
    const steps = tableOf({ step: [3, 4], step_time_ps: [9, 9], input_ps: [4, 5], output_ps: [0, 0], device_compute_ps: [1, null], other_ps: [1, 1] });
    expect(seriesOf(steps).map(({ name, token }) => [name, token])).toEqual([
      ['device_compute_ps', '--c-compute'],
      ['input_ps', '--c-input'],
      ['other_ps', '--c-idle'],
    ]);
    expect(seriesOf(undefined)).toEqual([]);
  });

  it('have the numbers or names of the steps', () => {
    expect(stepNames(tableOf({ step: [3, 4] }))).toEqual(['3', '4']);
    expect(stepNames(tableOf({ step: ['warm-up', '1'] }))).toEqual(['warm-up', '1']);
  });
});
