import { describe, expect, it } from 'vitest';
import {
  boxAt,
  encodeInstances,
  firstAfter,
  firstInstanceFrom,
  instancesWithin,
  rowAt,
  type Boxes,
} from './boxes';
import { bandsOf } from './renderer';

/** Row 0: [10, 20) [30, 31); row 1: [12, 14) three merged. */
const BOXES: Boxes = {
  n: 3,
  startPs: Float64Array.of(10, 30, 12),
  durationPs: Float64Array.of(10, 1, 2),
  nameId: Int32Array.of(0, 1, 0),
  eventId: Float64Array.of(7, 8, 9),
  nMerged: Float64Array.of(1, 1, 3),
  names: ['a', 'b'],
  style: Uint8Array.of(4, 9, 4),
  longestPs: Float64Array.of(10, 1, 1),
  rowFirst: Int32Array.of(0, 2, 3),
};
const PLACES = { y: Float32Array.of(24, 42), height: Uint8Array.of(17, 17) };
const WINDOW = { startPs: 10, endPs: 40 };

describe('encodeInstances', () => {
  it('rebases times to the window and carries looks and places', () => {
    const batch = encodeInstances(BOXES, PLACES, null, WINDOW);
    expect([batch.n, batch.originPs]).toEqual([3, 10]);
    expect([...batch.floats.subarray(0, 3)]).toEqual([0, 10, 24]);
    expect([...batch.floats.subarray(8, 11)]).toEqual([2, 4, 42]);
    expect([...batch.marks.subarray(44, 47)]).toEqual([4, 1, 17]);
  });
  it('leaves out rows that are folded away', () => {
    const batch = encodeInstances(BOXES, { ...PLACES, y: Float32Array.of(Number.NaN, 42) }, null, WINDOW);
    expect(batch.n).toBe(1);
    expect(batch.floats[2]).toBe(42);
  });
  it('keeps the near end of an event exact that began an hour before the window', () => {
    const hour = 3.6e15;
    const long: Boxes = {
      ...BOXES,
      n: 1,
      startPs: Float64Array.of(0),
      durationPs: Float64Array.of(hour + 500),
      nameId: Int32Array.of(0),
      nMerged: Float64Array.of(1),
      rowFirst: Int32Array.of(0, 1),
    };
    const batch = encodeInstances(long, { y: Float32Array.of(0), height: Uint8Array.of(17) }, null, {
      startPs: hour,
      endPs: hour + 1000,
    });
    expect(batch.floats[0]).toBe(-10_000);
    expect(batch.floats[1]).toBe(500);
  });
  it('finds the instances in sight', () => {
    const batch = encodeInstances(BOXES, PLACES, null, WINDOW);
    expect(instancesWithin(batch, 0, 1000)).toEqual([0, 3]);
    expect(instancesWithin(batch, 42, 1000)).toEqual([2, 3]);
    expect(instancesWithin(batch, 100, 200)).toEqual([0, 0]);
  });
});

describe('drawing', () => {
  it('marks merged boxes and those that a search did not find', () => {
    const { marks } = encodeInstances(BOXES, PLACES, Uint8Array.of(1, 0, 1), WINDOW);
    expect([marks[13], marks[29], marks[45]]).toEqual([2, 0, 3]);
  });
  it('begins a row with the last box that starts before the window', () => {
    const batch = encodeInstances(BOXES, PLACES, null, WINDOW);
    expect(firstInstanceFrom(batch, 0, 5)).toBe(0);
    expect(firstInstanceFrom(batch, 0, 25)).toBe(1);
    expect(firstInstanceFrom(batch, 1, -5)).toBe(2);
  });
  it('draws pinned rows in a band of their own', () => {
    const frame = {
      widthPx: 100,
      heightPx: 300,
      pixelRatio: 1,
      startPs: 0,
      endPs: 1,
      scrollPx: 70,
      pinScrollPx: 0,
    };
    expect(bandsOf(frame, 0)).toEqual([{ topPx: 0, bottomPx: 300, scrollPx: 70 }]);
    expect(bandsOf({ ...frame, pinScrollPx: 15 }, 60)[1]?.scrollPx).toBe(15 - 20_000);
    expect(bandsOf(frame, 60)).toEqual([
      { topPx: 60, bottomPx: 300, scrollPx: 70 },
      { topPx: 0, bottomPx: 60, scrollPx: -20_000 },
    ]);
  });
});

describe('hit test', () => {
  it('finds the box at a time, by halves', () => {
    expect(firstAfter(BOXES.startPs, 0, 2, 10)).toBe(1);
    expect(boxAt(BOXES, 0, 15, 0)).toBe(0);
    expect(boxAt(BOXES, 0, 25, 0)).toBe(-1);
    expect(boxAt(BOXES, 1, 13, 0)).toBe(2);
    expect(boxAt(BOXES, 5, 13, 0)).toBe(-1);
  });
  it('forgives a near miss, and takes the nearer of two', () => {
    expect(boxAt(BOXES, 0, 22, 3)).toBe(0);
    expect(boxAt(BOXES, 0, 28, 3)).toBe(1);
    expect(boxAt(BOXES, 0, 9, 3)).toBe(0);
  });
  it('finds rows by height', () => {
    expect([23, 24, 40, 41, 50].map((y) => rowAt(PLACES, y))).toEqual([-1, 0, 0, -1, 1]);
  });
});

describe('instants under the pointer', () => {
  const boxes = {
    ...BOXES,
    n: 3,
    startPs: Float64Array.of(0, 100, 104),
    durationPs: Float64Array.of(100, 0, 50),
    nMerged: Float64Array.of(1, 1, 1),
    rowFirst: Int32Array.of(0, 3),
  };
  it('win over boxes within their diamond, and only there', () => {
    expect([94, 95, 99, 105, 106].map((timePs) => boxAt(boxes, 0, timePs, 2, 5))).toEqual([0, 1, 1, 1, 2]);
    expect([95, 105].map((timePs) => boxAt(boxes, 0, timePs, 2))).toEqual([0, 2]);
  });
  it('win only as far as their diamond has room', () => {
    const near = { ...boxes, startPs: Float64Array.of(90, 100, 104), durationPs: Float64Array.of(10, 0, 2) };
    expect([97, 98.6, 101.4, 103].map((timePs) => boxAt(near, 0, timePs, 2, 5))).toEqual([0, 1, 1, 2]);
  });
  it('are boxes if several are merged', () => {
    expect(boxAt({ ...boxes, nMerged: Float64Array.of(1, 4, 1) }, 0, 97, 2, 5)).toBe(0);
  });
});
