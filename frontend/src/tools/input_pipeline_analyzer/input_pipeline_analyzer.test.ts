import { describe, expect, it } from 'vitest';
import type { Scalar } from '../../api/types';
import { INPUT_PIPELINE_ANALYZER } from '../../api/tables/input_pipeline_analyzer';
import type { Payload } from '../../api/types';
import { answerOf, tableFor } from '../testing';
import {
  adviceOf,
  categoryTokens,
  chartNote,
  hasInputOps,
  loaderFacts,
  shareOf,
  sparseCoreOf,
  tilesOf,
} from './model';

const scalar = (value: number | null, unit: Scalar['unit'], title = 't', note = ''): Scalar => ({
  value,
  unit,
  title,
  note,
});
const plain = (text: string | undefined): string | undefined => text?.replaceAll('\u00a0', ' ');

type Cells = (number | string | null)[];
const answer = (tables: Record<string, Record<string, Cells>>, scalars: Payload['scalars'] = {}): Payload =>
  answerOf(INPUT_PIPELINE_ANALYZER.page, tables, scalars);
const steps = (columns: Record<string, Cells>): Payload => answer({ steps: columns });

const scalars = {
  step_time_avg_ps: scalar(12e9, 'ps', 'Average step time'),
  step_time_sd_ps: scalar(1e9, 'ps'),
  input_fraction: scalar(0.42, 'fraction', 'Waiting for input'),
  input_fraction_sd: scalar(0.03, 'fraction'),
  input_fraction_min: scalar(0.38, 'fraction'),
  input_fraction_max: scalar(0.51, 'fraction'),
  n_steps: scalar(5, 'count', 'Steps'),
  host_enqueue_fraction: scalar(null, 'fraction', 'Enqueuing'),
};

describe('the data loader of one host', () => {
  it('is listed without its host, and with the reason for what is unknown', () => {
    const table = tableFor(INPUT_PIPELINE_ANALYZER.page.tables.loader, {
      host: ['a'],
      iterator: ['it'],
      loads_in: [null],
      n_fetches: [12],
    });
    const columns = table.columns.map((column) =>
      column.name === 'loads_in' ? { ...column, unknown: 'a frame does not say it' } : column,
    );
    const facts = loaderFacts({ ...table, columns });
    expect(facts.slice(0, 3)).toEqual([
      { name: 'loads_in', value: 'unknown: a frame does not say it' },
      { name: 'n_fetches', value: '12' },
      { name: 'fetch_ps', value: null },
    ]);
  });
});

describe('tiles', () => {
  it('begin with the share of waiting and its spread, which is no tile of its own', () => {
    const names = ['input_fraction', 'step_time_avg_ps', 'n_steps'];
    const tiles = tilesOf({ ...answer({}, scalars), tiles: names });
    expect(tiles.map(({ name }) => name)).toEqual(names);
    expect(plain(tiles[0]?.note)).toBe('± 3.00% · 38.0% to 51.0%');
    expect(plain(tiles[1]?.note)).toBe('± 1.00 ms');
    expect(tiles[2]?.note).toBe('');
  });
});

describe('the share of waiting', () => {
  it('has a band where cores differ, and the core that waits longest', () => {
    const cores = steps({
      input_fraction: [0.2, 0.4],
      input_fraction_min: [0.1, 0.4],
      input_fraction_max: [0.3, 0.4],
      input_core: ['h:0', 'h:1'],
    });
    expect(shareOf(cores)).toMatchObject({
      values: [0.2, 0.4],
      band: { low: [0.1, 0.4], high: [0.3, 0.4] },
      who: { names: ['h:0', 'h:1'] },
    });
  });
  it('has none where they agree or are not known', () => {
    expect(
      shareOf(steps({ input_fraction: [0.2], input_fraction_min: [0.2], input_fraction_max: [0.2] })),
    ).not.toHaveProperty('band');
    expect(shareOf(steps({ input_fraction: [0.2] }))).not.toHaveProperty('who');
    expect(shareOf(steps({ input_fraction: [null] }))).toBeUndefined();
  });
  it("is explained in the chart's note", () => {
    expect(chartNote(5, undefined)).toBe('5 steps');
    const cores = steps({ input_fraction: [0.2], input_fraction_min: [0.1], input_fraction_max: [0.3] });
    expect(chartNote(1, shareOf(cores))).toBe(
      '1 step · line: share of the step spent waiting for input, the band spans the cores',
    );
  });
});

describe('host and cores', () => {
  const tables = {
    host_categories: { category: ['Preprocessing', 'Other'], color: ['host', ''], time_ps: [3, 0] },
    breakdown: { category: ['Input'], color: ['input'] },
  };
  it('have the colors of all categories', () => {
    expect([...categoryTokens(answer(tables))]).toEqual([
      ['Input', '--c-input'],
      ['Preprocessing', '--c-host'],
      ['Other', '--c-idle'],
    ]);
  });
  it('report whether there was any input', () => {
    expect(hasInputOps(answer(tables))).toBe(true);
    expect(hasInputOps(answer({ host_categories: { category: ['Other'], time_ps: [0] } }))).toBe(false);
  });
  it('average the SparseCores where there are some', () => {
    expect(sparseCoreOf(steps({ sc_idle_ps: [1e9, 3e9, null] })).map(({ value }) => plain(value))).toEqual([
      '2.00 ms per step',
    ]);
    expect(sparseCoreOf(steps({ step: [1] }))).toEqual([]);
  });
  it('list advice', () =>
    expect(
      adviceOf(answer({ advice: { category: ['Preprocessing'], text: ['Use `map`'], tool: [null] } })),
    ).toEqual([{ category: 'Preprocessing', text: 'Use `map`', tool: '' }]));
});
