import { describe, expect, it } from 'vitest';
import { placeRows } from './layout';
import { elsewhere } from './nothing_here';
import { firstIn, neighbor, pick } from './picking';
import { laidOut, WHOLE } from './testing';
import { hide, PLAIN } from './track_view';

describe('picking', () => {
  const layout = laidOut();
  const a = pick(WHOLE, placeRows(WHOLE, layout), 150, 60, 0);
  it('finds the box under the pointer', () => {
    expect(a).toMatchObject({ event: 10, name: 'a', track: 5, depth: 0, nMerged: 1 });
    expect(pick(WHOLE, placeRows(WHOLE, layout), 450, 60, 0)).toBeNull();
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
