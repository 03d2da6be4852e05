import { describe, expect, it } from 'vitest';
import { placeRows } from './layout';
import { elsewhere } from './nothing_here';
import { firstIn, neighbor, pick } from './picking';
import { laidOut, WHOLE } from '../testing';
import { hide, PLAIN } from './track_view';

const EXACT = { slackPs: 0, diamondPs: 0 };

describe('picking', () => {
  const layout = laidOut();
  const a = pick(WHOLE, placeRows(WHOLE, layout), 150, 60, EXACT);
  it('finds the box under the pointer', () => {
    expect(a).toMatchObject({ event: 10, name: 'a', track: 5, depth: 0, nMerged: 1 });
    expect(pick(WHOLE, placeRows(WHOLE, layout), 450, 60, EXACT)).toBeNull();
  });
  it('begins with the first box in view of the topmost row that has one', () => {
    const first = firstIn(WHOLE, 0, Number.MAX_SAFE_INTEGER, layout.placeOfTrack);
    expect(first?.name).toBe('a');
    expect(
      firstIn(WHOLE, (first?.startPs ?? 0) + 1, Number.MAX_SAFE_INTEGER, layout.placeOfTrack)?.name,
    ).not.toBe('a');
    expect(
      firstIn(WHOLE, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER, layout.placeOfTrack),
    ).toBeNull();
  });

  it('walks left, right, in and out', () => {
    if (!a) throw new Error('nothing picked');
    const b = neighbor(WHOLE, a, 'right');
    expect(b?.name).toBe('b');
    expect(b && neighbor(WHOLE, b, 'left')?.name).toBe('a');
    expect(neighbor(WHOLE, a, 'left')).toBeNull();
    const c = neighbor(WHOLE, a, 'down');
    expect(c?.name).toBe('c');
    expect(c && neighbor(WHOLE, c, 'right')?.name).toBe('d');
    expect(c && neighbor(WHOLE, c, 'up')?.name).toBe('a');
    expect(b && neighbor(WHOLE, b, 'down')).toBeNull();
  });
});

describe('an empty window', () => {
  const layout = laidOut();
  const look = (startPs: number, endPs: number, ...inSight: number[]): [string, string] | null => {
    const found = elsewhere(WHOLE, WHOLE, layout, { startPs, endPs }, new Set(inSight));
    return found && [found.side, found.picked.name];
  };
  it('is silent where a track in sight has an event, even one that spans the window', () => {
    expect(look(150, 160, 5, 2)).toBeNull();
    expect(look(420, 430, 5, 2)).toBeNull();
  });
  it('points to tracks out of sight that have events in the window', () => {
    expect(look(150, 160, 2)).toEqual(['up', 'a']);
    expect(look(420, 430, 5)).toEqual(['down', '(no name)']);
  });
  it('points to the nearest event in time', () => {
    expect(look(0, 60, 5, 2)).toEqual(['right', 'a']);
    expect(look(560, 900, 5, 2)).toEqual(['left', 'b']);
  });
  it('knows no other place where tracks are hidden', () => {
    const none = laidOut(hide(PLAIN, [5, 2], true));
    expect(elsewhere(WHOLE, WHOLE, none, { startPs: 0, endPs: 50 }, new Set())).toBeNull();
  });
});

describe('the first box within', () => {
  /** Row 1: a merged box from 90 to 130 holds events of before and within the outer one, from 100 on. */
  const merged = {
    ...WHOLE,
    boxes: {
      ...WHOLE.boxes,
      startPs: Float64Array.of(100, 500, 90, 200, 400),
      durationPs: Float64Array.of(300, 50, 40, 100, 90),
      nMerged: Float64Array.of(1, 1, 3, 1, 3),
    },
  };
  it('is the merged one that begins before the outer one', () => {
    const outer = pick(merged, placeRows(merged, laidOut()), 150, 60, EXACT);
    expect(outer && neighbor(merged, outer, 'down')).toMatchObject({ startPs: 90, nMerged: 3 });
  });
});
