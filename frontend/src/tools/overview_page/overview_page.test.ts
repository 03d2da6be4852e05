import { describe, expect, it } from 'vitest';
import type { Payload } from '../../api/types';
import { OVERVIEW_PAGE } from '../../api/tables/overview_page';
import { answerOf } from '../testing';
import { factsOf, recommendationsOf, stepParts, tilesOf } from './model';

const payload = (scalars: Payload['scalars']): Payload => answerOf(OVERVIEW_PAGE.page, {}, scalars);
const ps = (value: number | null, title = 't', note = ''): Payload['scalars'][string] => ({
  value,
  unit: 'ps',
  title,
  note,
});

describe('overview', () => {
  it('shows the tiles that the server chose, with the spread of steps in that of the step time', () => {
    const scalars = {
      n_steps: ps(5, 'Steps'),
      step_time_avg_ps: ps(12.4e9, 'Average', 'mean over 2 hosts'),
      step_time_sd_ps: ps(0.6e9),
      step_time_min_ps: ps(11.2e9),
      step_time_max_ps: ps(15.8e9),
    };
    const tiles = tilesOf({ ...payload(scalars), tiles: ['step_time_avg_ps', 'n_steps'] });
    expect(tiles.map(({ title }) => title)).toEqual(['Average', 'Steps']);
    expect(tiles[0]?.note.replaceAll('\u00a0', ' ')).toBe(
      'mean over 2 hosts · ± 600 µs · 11.2 ms to 15.8 ms',
    );
    expect(tiles[1]?.note).toBe('');
  });

  it('stacks the parts of a step that the answer has, device compute lowest', () => {
    const steps = { step: ['3', '4'], input_ps: [4, 5], device_compute_ps: [1, null], other_ps: [1, 1] };
    expect(stepParts(answerOf(OVERVIEW_PAGE.page, { steps }))).toEqual([
      { column: 'device_compute_ps', category: 'device_compute_ps', color: 'compute' },
      { column: 'input_ps', category: 'input_ps', color: 'input' },
      { column: 'other_ps', category: 'other_ps', color: 'other' },
    ]);
  });

  it('lists facts and recommendations, unknown ones too', () => {
    expect(
      factsOf(
        answerOf(OVERVIEW_PAGE.page, { environment: { name: ['Device', 'Task'], value: ['CPU', null] } }),
      ),
    ).toEqual([
      { name: 'Device', value: 'CPU' },
      { name: 'Task', value: null },
    ]);
    expect(
      recommendationsOf(
        answerOf(OVERVIEW_PAGE.page, {
          recommendations: { kind: ['input'], text: ['Do `x`'], tool: ['trace_viewer'] },
        }),
      ),
    ).toEqual([{ kind: 'input', text: 'Do `x`', tool: 'trace_viewer' }]);
    expect(recommendationsOf(answerOf(OVERVIEW_PAGE.page))).toEqual([]);
  });
});
