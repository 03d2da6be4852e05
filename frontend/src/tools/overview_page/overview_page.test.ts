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
  it('puts the spread of steps into the first tile, and makes at most six', () => {
    const scalars = {
      n_steps: ps(5),
      step_time_avg_ps: ps(12.4e9, 'Average'),
      step_time_sd_ps: ps(0.6e9),
      step_time_min_ps: ps(11.2e9),
      step_time_max_ps: ps(15.8e9),
    };
    const more = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`x${i}`, ps(i)]));
    const tiles = tilesOf(payload({ ...scalars, ...more }));
    expect(tiles).toHaveLength(6);
    expect(tiles[0]).toMatchObject({ title: 'Average', value: 12.4e9 });
    expect(tiles[0]?.note.replaceAll('\u00a0', ' ')).toBe('± 600 µs · 11.2 ms to 15.8 ms');
  });

  it('keeps unknown numbers as tiles with their reason, and no spread where there is none', () => {
    expect(tilesOf(payload({ step_time_avg_ps: ps(null, 'Average', 'no steps') }))).toEqual([
      { title: 'Average', value: null, unit: 'ps', note: 'no steps' },
    ]);
  });

  it('has one tile for all that is unknown', () => {
    const tiles = tilesOf(
      payload({
        step_time_avg_ps: ps(null, 'Average', 'no steps'),
        n_steps: ps(0, 'Steps'),
        idle: ps(null, 'Idle', 'no device'),
        busy: ps(7, 'Busy'),
      }),
    );
    expect(tiles.map(({ title }) => title)).toEqual(['Average', 'Steps', 'Busy']);
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
