import { describe, expect, it } from 'vitest';
import { readTable } from '../api/declared';
import { INPUT_PIPELINE_ANALYZER } from '../api/tables/input_pipeline_analyzer';
import { breakdownOf, seriesOf, spreadText, stepNames, stepRow, stepTitle } from './steps';
import { payloadOf, tableFor } from './testing';

const { steps: STEPS } = INPUT_PIPELINE_ANALYZER.page.tables;
const stepsOf = (cells: Parameters<typeof tableFor<typeof STEPS.required, typeof STEPS.optional>>[1]) =>
  readTable(payloadOf({ tables: { steps: tableFor(STEPS, cells) } }), STEPS);
const part = (column: string, category: string, color: string) => ({ column, category, color });

describe('the series of steps', () => {
  it('stack the parts that occur, in the order of the parts', () => {
    const steps = stepsOf({
      step: ['3', '4', '5'],
      tc_compute_ps: [7, null, 9],
      tc_infeed_ps: [1, 2, 3],
      host_transfer_ps: [0, 0, 0],
    });
    const series = seriesOf(steps, [
      part('tc_infeed_ps', 'Infeed', 'input'),
      part('tc_compute_ps', 'Compute', 'compute'),
      part('host_transfer_ps', 'Transfer', 'output'),
    ]);
    expect(series).toEqual([
      { name: 'tc_infeed_ps', title: 'Infeed', token: '--c-input', values: [1, 2, 3] },
      { name: 'tc_compute_ps', title: 'Compute', token: '--c-compute', values: [7, null, 9] },
    ]);
  });

  it('report a column that the table lacks', () => {
    const steps = stepsOf({ step: ['3'] });
    expect(() => seriesOf(steps, [part('gone_ps', 'Gone', 'output')])).toThrow(
      'no number column gone_ps in table steps',
    );
    expect(() => seriesOf(steps, [part('step', 'A text', 'output')])).toThrow('no number column step');
  });

  it('have the names of the steps, or their rows', () => {
    expect(stepNames(stepsOf({ step: ['warm-up', '1', null] }))).toEqual(['warm-up', '1', '2']);
  });

  it('are divided into parts that occur, largest first, and absent ones', () => {
    const { parts, absent } = breakdownOf([
      { category: 'Input', color: 'input', avg_ps: 3, sd_ps: 1, fraction: 0.3 },
      { category: 'Output', color: 'output', avg_ps: 0, sd_ps: 0, fraction: 0 },
      { category: 'Compute', color: 'compute', avg_ps: 7, sd_ps: 1, fraction: 0.7 },
    ]);
    expect(parts.map(({ title, fraction, avgPs, sdPs }) => [title, fraction, avgPs, sdPs])).toEqual([
      ['Compute', 0.7, 7, 1],
      ['Input', 0.3, 3, 1],
    ]);
    expect(absent).toEqual(['Output']);
  });

  it('may be of the host, with a time and a meaning; without any time there is none', () => {
    const rows = [
      { category: 'Enqueuing', color: 'launch', time_ps: 3, fraction: 0.3, meaning: 'Sending' },
      { category: 'Other', color: 'idle', time_ps: 7, fraction: 0.7, meaning: '' },
    ];
    expect(
      breakdownOf(rows).parts.map(({ title, avgPs, sdPs, meaning }) => [title, avgPs, sdPs, meaning]),
    ).toEqual([
      ['Other', 7, null, ''],
      ['Enqueuing', 3, null, 'Sending'],
    ]);
    expect(breakdownOf([{ category: 'Enqueuing', color: '', time_ps: 0, fraction: null }]).parts).toEqual([]);
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
