import { describe, expect, it } from 'vitest';
import type { Payload, Table } from '../../api/types';
import { breakdownOf, factsOf, parseZoom, recommendationsOf, seriesOf, stepAxis, stepNames, tilesOf } from './model';

function table(columns: Record<string, (number | string | null)[]>): Table {
  const entries = Object.entries(columns);
  return {
    title: '',
    note: '',
    n_rows: entries[0]?.[1].length ?? 0,
    columns: entries.map(([name, values]) =>
      values.some((value) => typeof value === 'string')
        ? { name, title: name, unit: '', kind: 'text', strings: values.map(String), codes: values.map((value, i) => (value === null ? -1 : i)) }
        : { name, title: name, unit: 'ps', kind: 'number', values: values as (number | null)[] },
    ),
  };
}

function payload(scalars: Payload['scalars']): Payload {
  return { tool: 'overview_page', run: 'r', hosts: ['h'], verdict: null, scalars, tables: {}, diagnostics: [] };
}

const ps = (value: number | null, title = 't', note = ''): Payload['scalars'][string] => ({ value, unit: 'ps', title, note });

describe('overview', () => {
  it('tells the spread of steps in the first tile, and makes at most six', () => {
    const scalars = { n_steps: ps(5), step_time_avg_ps: ps(12.4e9, 'Average'), step_time_sd_ps: ps(0.6e9), step_time_min_ps: ps(11.2e9), step_time_max_ps: ps(15.8e9) };
    const more = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`x${i}`, ps(i)]));
    const tiles = tilesOf(payload({ ...scalars, ...more }));
    expect(tiles).toHaveLength(6);
    expect(tiles[0]).toMatchObject({ title: 'Average', value: 12.4e9 });
    expect(tiles[0]?.note.replaceAll('\u00a0', ' ')).toBe('± 600 µs · 11.2 ms to 15.8 ms');
  });

  it('keeps unknown numbers as tiles with their reason, and no spread where there is none', () => {
    expect(tilesOf(payload({ step_time_avg_ps: ps(null, 'Average', 'no steps') }))).toEqual([{ title: 'Average', value: null, unit: 'ps', note: 'no steps' }]);
  });

  it('stacks the parts that occur, device compute lowest', () => {
    const steps = table({ step: [3, 4], step_time_ps: [9, 9], input_ps: [4, 5], output_ps: [0, 0], device_compute_ps: [1, null], other_ps: [1, 1] });
    expect(seriesOf(steps).map(({ name, token }) => [name, token])).toEqual([
      ['device_compute_ps', '--c-compute'],
      ['input_ps', '--c-input'],
      ['other_ps', '--c-idle'],
    ]);
    expect(stepNames(steps)).toEqual(['3', '4']);
    expect(stepNames(table({ step: ['warm-up', '1'] }))).toEqual(['warm-up', '1']);
    expect(seriesOf(undefined)).toEqual([]);
  });

  it('says on the axis once what all steps are called', () => {
    expect(stepAxis(['train 23', 'train 24'])).toEqual({ name: 'train', labels: ['23', '24'] });
    expect(stepAxis(['train 23', 'eval 24'])).toEqual({ name: 'step', labels: ['train 23', 'eval 24'] });
    expect(stepAxis(['3', '4'])).toEqual({ name: 'step', labels: ['3', '4'] });
    expect(stepAxis([])).toEqual({ name: 'step', labels: [] });
  });

  it('parts a step into what occurs, largest first, and what does not', () => {
    const { parts, absent } = breakdownOf(table({ category: ['Input', 'Output', 'Compute'], color: ['input', 'output', 'compute'], avg_ps: [3, 0, 7], sd_ps: [1, 0, 1], fraction: [0.3, 0, 0.7] }));
    expect(parts.map((part) => [part.title, part.fraction])).toEqual([['Compute', 0.7], ['Input', 0.3]]);
    expect(absent).toEqual(['Output']);
  });

  it('lists facts and recommendations, unknown ones too', () => {
    expect(factsOf(table({ name: ['Device', 'Task'], value: ['CPU', null] }))).toEqual([{ name: 'Device', value: 'CPU' }, { name: 'Task', value: null }]);
    expect(recommendationsOf(table({ kind: ['input'], text: ['Do `x`'], tool: ['trace_viewer'] }))).toEqual([{ kind: 'input', text: 'Do `x`', tool: 'trace_viewer' }]);
    expect(recommendationsOf(undefined)).toEqual([]);
  });

  it.each([
    ['2..8', [2, 8]],
    ['2..99', [2, 9]],
    ['8..2', null],
    ['x', null],
    [undefined, null],
  ])('zoom %s', (text, expected) => expect(parseZoom(text, 10)).toEqual(expected));
});
