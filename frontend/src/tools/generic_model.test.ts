import { describe, expect, it } from 'vitest';
import { changeOf, donutOfTable, paramsOf, seriesOfTable } from './generic_model';
import { tableOf } from './testing';

describe('the page of any tool', () => {
  it('keeps the state of each table in its own part of the link', () => {
    const params = { 'ops.sort': '-time', 'ops.f.name': '=a', 'ops2.sort': 'x', step: '3' };
    expect(paramsOf('ops', params)).toEqual({ sort: '-time', 'f.name': '=a' });
    expect(changeOf('ops', { sort: '-time', q: undefined })).toEqual({
      'ops.sort': '-time',
      'ops.q': undefined,
    });
  });

  it('draws shares of names, without those that have none', () => {
    const donut = donutOfTable(
      'by',
      tableOf({ name: ['a', 'b', 'c', 'd'], time_ps: [6, 0, null, 2] }, 'By name'),
    );
    expect(donut).toMatchObject({ name: 'by', title: 'By name', timeName: 'time_ps' });
    expect(donut?.slices.map(({ name, timePs, fraction }) => [name, timePs, fraction])).toEqual([
      ['a', 6, 0.75],
      ['d', 2, 0.25],
    ]);
    expect(donutOfTable('by', tableOf({ name: ['a'], time_ps: [0] }))).toBeNull();
    expect(donutOfTable('by', tableOf({ time_ps: [1] }))).toBeNull();
  });

  it('stacks the columns of one unit', () => {
    const table = tableOf({
      step: ['1', '2'],
      input_ps: [1, 2],
      wait_fraction: [0.1, 0.2],
      other_ps: [3, null],
    });
    expect(seriesOfTable(table)).toMatchObject({
      names: ['1', '2'],
      series: [
        { name: 'input_ps', values: [1, 2] },
        { name: 'other_ps', values: [3, null] },
      ],
    });
    expect(seriesOfTable(tableOf({ step: [], input_ps: [] }))).toBeNull();
  });
});
