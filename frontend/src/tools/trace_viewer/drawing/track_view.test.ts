import { describe, expect, it } from 'vitest';
import { PIN_PX } from '../../../canvas/boxes';
import { RULER_PX } from '../../../canvas/overlay';
import { contentY, PAD_PX, PITCH_PX, placeRows, trackAt, tracksWithin } from './layout';
import { targetOf } from '../tracks/names_column';
import type { Track } from '../data/model';
import { FACTS, laidOut, WHOLE } from '../testing';
import {
  arrange,
  changeRows,
  fold,
  hide,
  move,
  parseTrackView,
  pin,
  PLAIN,
  rowsShown,
  trackParams,
  type TrackView,
} from './track_view';

describe('tracks as the user wants them', () => {
  const shown = (view: TrackView): number[][] => {
    const { pinned, sections } = arrange(
      [
        { ...FACTS.tracks[0]!, id: 1 },
        { ...FACTS.tracks[0]!, id: 2, name: 'Steps' },
        { ...FACTS.tracks[0]!, id: 3 },
        { ...FACTS.tracks[1]!, id: 4 },
      ],
      view,
    );
    return [pinned.map(({ id }) => id), ...sections.map(({ tracks }) => tracks.map(({ id }) => id))];
  };
  it('hides, pins, filters and moves', () => {
    expect(shown(PLAIN)).toEqual([[], [1, 2, 3], [4]]);
    expect(shown(hide(PLAIN, [4, 1], true))).toEqual([[], [2, 3]]);
    expect(shown(pin(PLAIN, 3))).toEqual([[3], [1, 2], [4]]);
    expect(shown(pin(pin(PLAIN, 3), 3))).toEqual([[], [1, 2, 3], [4]]);
    expect(shown({ ...PLAIN, filter: 'step' })).toEqual([[], [2]]);
    expect(shown(move(PLAIN, 3, 1))).toEqual([[], [3, 1, 2], [4]]);
    expect(shown(move(move(PLAIN, 3, 1), 3, -1))).toEqual([[], [1, 2, 3], [4]]);
    expect(shown(move(pin(pin(PLAIN, 3), 1), 1, 3))).toEqual([[1, 3], [2], [4]]);
  });
  it('says the host only where there are several', () => {
    const two = [
      { ...FACTS.tracks[0]!, host: 'w0' },
      { ...FACTS.tracks[0]!, id: 9, host: 'w1' },
    ];
    expect(arrange(two, PLAIN).sections.map(({ title }) => title)).toEqual(['w0 · TPU:0', 'w1 · TPU:0']);
  });
  it('comes back from the URL as it went', () => {
    const view = fold(
      move(hide(pin({ ...PLAIN, filter: 'xla', maxDepths: 3 }, 7), [5, 6], true), 1, 2),
      's1',
    );
    expect(parseTrackView(JSON.parse(JSON.stringify(trackParams(view))) as Record<string, string>)).toEqual(
      view,
    );
    expect(Object.values(trackParams(PLAIN)).every((value) => value === undefined)).toBe(true);
    expect(parseTrackView({ pin: 'a,3', move: 'x:y,1', fold: '<b>', depths: '-4' })).toEqual({
      ...PLAIN,
      pinned: [3],
    });
  });
  it('puts pinned tracks above everything, and finds the track under the pointer', () => {
    const layout = laidOut(pin(PLAIN, 2));
    expect(layout.pinnedBottomPx).toBe(RULER_PX + PITCH_PX + 2 * PAD_PX);
    expect(layout.placeOfTrack.get(2)?.y).toBe(RULER_PX - PIN_PX);
    expect(trackAt(layout, contentY(layout, 30, 500, 0))?.track.id).toBe(2);
    expect(trackAt(layout, contentY(layout, 90, 0, 0))?.track.id).toBe(5);
    expect(tracksWithin(layout, 5000, 6000)).toEqual([2]);
  });
  it('cuts tracks to a number of rows', () => {
    const places = placeRows(WHOLE, laidOut({ ...PLAIN, maxDepths: 1 }));
    expect([...places.y].map(Number.isNaN)).toEqual([false, true, false]);
  });
  it('drops a track before the one whose middle is below', () => {
    const places = laidOut().sections.flatMap(({ tracks }) => tracks);
    expect([0, 60, 100, 900].map((y) => targetOf(places, y))).toEqual([5, 5, 2, -1]);
  });
});

describe('rows and empty tracks', () => {
  const [ops, python] = FACTS.tracks as [Track, Track];
  it('shows fewer and more rows of one track, and forgets what is the default', () => {
    const less = changeRows(PLAIN, ops, -1);
    expect([rowsShown(ops, less), rowsShown(ops, PLAIN), rowsShown(python, less)]).toEqual([1, 2, 1]);
    expect(rowsShown(ops, changeRows(less, ops, -1))).toBe(1);
    expect(changeRows(less, ops, 1)).toEqual(PLAIN);
    const one = { ...PLAIN, maxDepths: 1 };
    const both = changeRows(one, ops, 1);
    expect([rowsShown(ops, both), changeRows(both, ops, 1)]).toEqual([2, both]);
    expect(changeRows(both, ops, -1)).toEqual(one);
  });
  it('hides tracks without events, but pinned ones', () => {
    const view = { ...PLAIN, hidesEmpty: true };
    const ids = (active: ReadonlySet<number> | null, of = view): number[] =>
      arrange(FACTS.tracks, of, active).sections.flatMap(({ tracks }) => tracks.map(({ id }) => id));
    expect([ids(null), ids(new Set([2])), ids(new Set())]).toEqual([[5, 2], [2], []]);
    expect(ids(new Set([2]), PLAIN)).toEqual([5, 2]);
    expect(arrange(FACTS.tracks, pin(view, 5), new Set([2])).pinned).toEqual([ops]);
  });
  it('keeps both in the URL', () => {
    const view = { ...PLAIN, rows: new Map([[5, 1]]), hidesEmpty: true };
    expect(trackParams(view)).toMatchObject({ rows: '5:1', empty: 'hide' });
    expect(parseTrackView({ rows: '5:1', empty: 'hide' })).toEqual(view);
    expect(parseTrackView({ rows: '5:0,7:-2,x:1,3', empty: '1' })).toEqual(PLAIN);
  });
});
