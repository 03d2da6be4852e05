import { describe, expect, it } from 'vitest';
import { breakdownOf, seriesOf, spreadText, stepNames, stepRow, stepTitle } from './steps';
import { tableOf } from './testing';

describe('the series of steps', () => {
  it('stacks the parts that occur, device compute lowest', () => {
    const steps = tableOf({
      step: [3, 4],
      step_time_ps: [9, 9],
      input_ps: [4, 5],
      output_ps: [0, 0],
      device_compute_ps: [1, null],
      other_ps: [1, 1],
    });
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

  it('are those that the breakdown names, in its order, where it does', () => {
    const steps = tableOf({ step: [3, 4], tc_compute_ps: [7, 8], tc_infeed_ps: [1, 2], sc_idle_ps: [5, 5] });
    const breakdown = tableOf({
      category: ['Infeed', 'Compute', 'Gone'],
      column: ['tc_infeed_ps', 'tc_compute_ps', 'gone_ps'],
      color: ['input', 'compute', 'output'],
    });
    expect(seriesOf(steps, breakdown).map(({ name, title, token }) => [name, title, token])).toEqual([
      ['tc_infeed_ps', 'Infeed', '--c-input'],
      ['tc_compute_ps', 'Compute', '--c-compute'],
    ]);
  });

  it('go into what occurs, largest first, and what does not', () => {
    const { parts, absent } = breakdownOf(
      tableOf({
        category: ['Input', 'Output', 'Compute'],
        color: ['input', 'output', 'compute'],
        avg_ps: [3, 0, 7],
        sd_ps: [1, 0, 1],
        fraction: [0.3, 0, 0.7],
      }),
    );
    expect(parts.map((part) => [part.title, part.fraction])).toEqual([
      ['Compute', 0.7],
      ['Input', 0.3],
    ]);
    expect(absent).toEqual(['Output']);
  });

  it('may be of the host, with a time and a meaning; without any time there is none', () => {
    const table = tableOf({
      category: ['Enqueuing', 'Other'],
      color: ['launch', 'idle'],
      time_ps: [3, 7],
      fraction: [0.3, 0.7],
      meaning: ['Sending', ''],
    });
    expect(
      breakdownOf(table).parts.map(({ title, avgPs, sdPs, meaning }) => [title, avgPs, sdPs, meaning]),
    ).toEqual([
      ['Other', 7, null, ''],
      ['Enqueuing', 3, null, 'Sending'],
    ]);
    expect(
      breakdownOf(tableOf({ category: ['Enqueuing'], color: [''], time_ps: [0], fraction: [null] })).parts,
    ).toEqual([]);
  });
});

describe('one step', () => {
  it.each([
    ['train 41', 1],
    ['41', 1],
    ['4', 0],
    ['1', -1],
    ['', -1],
    [undefined, -1],
  ])('%s is row %s', (step, row) => expect(stepRow(['train 4', 'train 41', 'eval 41'], step)).toBe(row));

  it('is called a step, once', () => {
    expect(['train 41', '7', 'Step 3'].map(stepTitle)).toEqual(['Step train 41', 'Step 7', 'Step 3']);
  });
});

describe('the spread of steps', () => {
  it.each([
    [0.6e9, 11.2e9, 15.8e9, '± 600 µs · 11.2 ms to 15.8 ms'],
    [null, 11.2e9, 15.8e9, '11.2 ms to 15.8 ms'],
    [0, 5, 5, ''],
    [null, null, null, ''],
  ])('%s, %s to %s', (sd, min, max, expected) =>
    expect(spreadText(sd, min, max, 'ps').replaceAll('\u00a0', ' ')).toBe(expected),
  );
});
