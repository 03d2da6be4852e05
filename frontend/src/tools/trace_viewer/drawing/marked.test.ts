import { describe, expect, it } from 'vitest';
import { boxOf, markText, parseMark, stretchOf, totalsParams } from './marked';
import { laidOut } from '../testing';

describe('a marked stretch', () => {
  const layout = laidOut();
  it('comes back from the URL as it went', () => {
    for (const text of ['10-90', '10-90@5.2', '10-90@5:0-1']) expect(markText(parseMark(text)!)).toBe(text);
    expect([parseMark('90-10'), parseMark('x'), parseMark(undefined)]).toEqual([null, null, null]);
  });
  it('takes the tracks that the box touches, and the rows of a single one', () => {
    expect(boxOf(layout, 90, 10, 60, 130)).toEqual({
      startPs: 10,
      endPs: 90,
      trackIds: [5, 2],
      depths: null,
    });
    expect(boxOf(layout, 10, 90, 60, 62)).toEqual({ startPs: 10, endPs: 90, trackIds: [5], depths: [0, 0] });
    expect(stretchOf(boxOf(layout, 10, 90, 60, 62), layout).rows).toEqual({ topPx: 54, bottomPx: 73 });
  });
  it('requests the visible tracks', () => {
    expect(totalsParams(parseMark('10-90')!, [4, 7]).tracks).toBe('4,7');
    expect(totalsParams(parseMark('10-90@5:0-1')!, [4, 7])).toMatchObject({
      tracks: '5',
      depth_from: '0',
      depth_to: '1',
    });
  });
});
