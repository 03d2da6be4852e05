import { describe, expect, it } from 'vitest';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import { answerOf, scalarsOf } from '../../testing';
import { conditionOf, narrowed } from '../query/group_choice';
import { litBoxes } from '../drawing/lit';
import { decodeGroups, decodeHits, decodeSlices, stretchesOf } from './query_model';
import { WHOLE } from '../testing';

describe('answers about a query', () => {
  it('join neighboring pixels into stretches', () => {
    expect([...stretchesOf([0, 1, 2, 5, 9, 10], 1000, 10)]).toEqual([1000, 1030, 1050, 1060, 1090, 1110]);
    expect([...stretchesOf([], 0, 10)]).toEqual([]);
  });
  it('light the boxes that the server names, unless it drew others', () => {
    const hits = (nBoxes: number): ReturnType<typeof decodeHits> =>
      decodeHits(
        answerOf(
          TRACE_VIEWER.hits,
          { hits: { box: [1, 4], track: [5, 2], depth: [0, 0], n: [1, 2] }, ruler: { pixel: [3], n: [3] } },
          scalarsOf({ n_boxes: nBoxes, pixel_ps: 2, n_in_window: 3 }),
        ),
        WHOLE,
      );
    expect([...hits(5).isLit]).toEqual([0, 1, 0, 0, 1]);
    expect(hits(5).nInWindow).toBe(3);
    expect([...hits(5).stretches]).toEqual([6, 8]);
    expect([...hits(6).isLit]).toEqual([0, 0, 0, 0, 0]);
  });
  it('light boxes of another window where they overlap lit ones of the same row', () => {
    const found = {
      window: WHOLE,
      isLit: Uint8Array.from([0, 1, 0, 0, 1]),
      stretches: new Float64Array(0),
      nInWindow: 2,
    };
    expect(litBoxes(WHOLE, found)).toBe(found.isLit);
    // Finer boxes: of the second one (500 to 550) two parts, of the merged one (400 to 490) three.
    const finer = {
      ...WHOLE,
      boxes: {
        ...WHOLE.boxes,
        n: 6,
        startPs: Float64Array.from([100, 500, 550, 390, 400, 490]),
        durationPs: Float64Array.from([300, 50, 10, 10, 20, 10]),
        rowFirst: Int32Array.from([0, 3, 6]),
      },
      rowTrack: Float64Array.from([5, 2]),
      rowDepth: Int32Array.from([0, 0]),
    };
    expect([...litBoxes(finer, found)]).toEqual([0, 1, 0, 0, 1, 0]);
    expect([...litBoxes({ ...finer, rowDepth: Int32Array.from([1, 1]) }, found)]).toEqual([0, 0, 0, 0, 0, 0]);
  });
  it('give slices and groups', () => {
    const slices = decodeSlices(
      answerOf(
        TRACE_VIEWER.slices,
        { slices: { event: [7], track: [5], name: ['dot'], start_ps: [10], duration_ps: [4] } },
        scalarsOf({ n_matches: 3, total_ps: 12, first: 2, n_recorded: 3, n_derived: 8 }),
      ),
    );
    expect(slices).toMatchObject({ nMatches: 3, first: 2, nRecorded: 3, nDerived: 8, isDerived: false });
    expect(slices.matches).toEqual([{ event: 7, track: 5, name: 'dot', startPs: 10, durationPs: 4 }]);
    const groups = decodeGroups(
      answerOf(
        TRACE_VIEWER.groups,
        { groups: { group: ['dot'], n: [3] } },
        scalarsOf({ n_groups: 1, n_events: 3 }),
      ),
    );
    expect(groups).toMatchObject({ nGroups: 1, nEvents: 3 });
  });
  it('narrow a query with alternatives as a whole', () => {
    expect(narrowed('name:a', 'step=3')).toBe('name:a step=3');
    expect(narrowed('name:a OR dur>1ms', 'step=3')).toBe('(name:a OR dur>1ms) step=3');
    expect(narrowed('', 'step=3')).toBe('step=3');
  });
  it('turn a group into the condition that leaves only it', () => {
    expect(conditionOf('name', 'dot.1')).toBe('name=dot.1');
    expect(conditionOf('name', 'a "b"')).toBe('name="a \\"b\\""');
    expect(conditionOf('thread', 'python')).toBe('track=python');
    expect(conditionOf('arg.Input Dims', '[1]')).toBe('arg."Input Dims"=[1]');
    expect([conditionOf('track', 'h · s · t'), conditionOf('name', '')]).toEqual([null, null]);
  });
});
