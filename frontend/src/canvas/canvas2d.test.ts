import { describe, expect, it } from 'vitest';
import { encodeInstances, type Boxes } from './boxes';
import { fillPixels, packed, shadesOf } from './canvas2d';
import { bandsOf } from './renderer';

const COLORS = {
  fills: [
    [1, 0, 0],
    [0, 0, 1],
  ] as const,
  background: [1, 1, 1] as const,
};
const RED = packed([1, 0, 0]);

/** One picosecond is a pixel. Row 0 (y 2–5): [0, 3) and [10, 20) merged; row 1 (y 8–9): [5, 6). */
const BOXES: Boxes = {
  n: 3,
  startPs: Float64Array.of(0, 10, 5),
  durationPs: Float64Array.of(3, 10, 1),
  nameId: new Int32Array(3),
  eventId: Float64Array.of(1, 2, 3),
  nMerged: Float64Array.of(1, 7, 1),
  names: ['a'],
  style: Uint8Array.of(0, 1, 0),
  longestPs: Float64Array.of(3, 2, 1),
  rowFirst: Int32Array.of(0, 2, 3),
};
const PLACES = { y: Float32Array.of(2, 8), height: Uint8Array.of(4, 2) };

function drawn(scrollPx: number, pinnedBottomPx: number): (x: number, y: number) => number {
  const pixels = { data: new Uint32Array(20 * 12), width: 20, height: 12 };
  const frame = { widthPx: 20, heightPx: 12, pixelRatio: 1, startPs: 0, endPs: 20, scrollPx, pinScrollPx: 0 };
  fillPixels(
    pixels,
    encodeInstances(BOXES, PLACES, null, { startPs: 0, endPs: 20 }),
    frame,
    bandsOf(frame, pinnedBottomPx),
    shadesOf(COLORS),
  );
  return (x, y) => pixels.data[y * 20 + x] as number;
}

describe('boxes as pixels', () => {
  it('fills the rows and nothing else', () => {
    const at = drawn(0, 0);
    expect([at(0, 1), at(0, 2), at(2, 5), at(3, 3), at(0, 6)]).toEqual([0, RED, RED, 0, 0]);
    expect([at(4, 8), at(5, 8), at(5, 9), at(6, 8)]).toEqual([0, RED, RED, 0]);
  });
  it('hatches merged boxes, slanted, and leaves a hairline at their end', () => {
    const at = drawn(0, 0);
    expect(new Set([10, 11, 12, 13].map((x) => at(x, 2))).size).toBe(2);
    for (let x = 10; x < 18; x++) expect(at(x, 3)).toBe(at(x + 1, 2));
    expect([at(18, 4) === 0, at(19, 4) === 0]).toEqual([false, true]);
  });
  it('gives what begins at the very end of the window its last pixel', () => {
    const last: Boxes = {
      ...BOXES,
      n: 1,
      startPs: Float64Array.of(20),
      durationPs: Float64Array.of(0),
      rowFirst: Int32Array.of(0, 1, 1),
    };
    const pixels = { data: new Uint32Array(20 * 12), width: 20, height: 12 };
    const frame = {
      widthPx: 20,
      heightPx: 12,
      pixelRatio: 1,
      startPs: 0,
      endPs: 20,
      scrollPx: 0,
      pinScrollPx: 0,
    };
    fillPixels(
      pixels,
      encodeInstances(last, PLACES, null, { startPs: 0, endPs: 20 }),
      frame,
      bandsOf(frame, 0),
      shadesOf(COLORS),
    );
    expect([...pixels.data.subarray(3 * 20 + 17, 3 * 20 + 20)]).toEqual([0, 0, RED]);
  });
  it('scrolls below the pinned rows', () => {
    const at = drawn(3, 4);
    expect([at(0, 0), at(0, 2), at(5, 5)]).toEqual([0, 0, RED]);
  });
  it('draws boxes as they come, each over those before, hatched in the same slant wherever they begin', () => {
    // Many boxes of less than a pixel, merged ones among them: neighbors take each other's pixels.
    const n = 120;
    const startPs = Float64Array.from({ length: n }, (_, i) => i * 0.37 + (i % 5 === 0 ? 0.2 : 0));
    const durationPs = Float64Array.from({ length: n }, (_, i) => (i % 7 === 0 ? 0.36 : 0.1));
    durationPs[n - 1] = 9;
    const nMerged = Float64Array.from({ length: n }, (_, i) => (i % 3 === 0 || i === n - 1 ? 4 : 1));
    const many: Boxes = {
      ...BOXES,
      n,
      startPs,
      durationPs,
      nMerged,
      style: Uint8Array.from({ length: n }, (_, i) => i % 2),
      rowFirst: Int32Array.of(0, n, n),
    };
    const batch = encodeInstances(many, { y: Float32Array.of(1, 30), height: Uint8Array.of(7, 2) }, null, {
      startPs: 0,
      endPs: 60,
    });
    const frame = {
      widthPx: 60,
      heightPx: 12,
      pixelRatio: 1,
      startPs: 0,
      endPs: 60,
      scrollPx: 0,
      pinScrollPx: 0,
    };
    const pixels = { data: new Uint32Array(60 * 12), width: 60, height: 12 };
    const shades = shadesOf(COLORS);
    fillPixels(pixels, batch, frame, bandsOf(frame, 0), shades);
    const plain = new Uint32Array(60 * 12);
    for (let i = 0; i < n; i++) {
      const left = Math.round(batch.floats[4 * i] as number);
      const end = Math.round(batch.floats[4 * i + 1] as number);
      const right = end - left >= 4 ? end - 1 : Math.max(end, left + 1);
      const look = (i % 2) * 4 + Number((nMerged[i] as number) > 1);
      for (let y = 1; y < 8; y++)
        for (let x = left; x < right; x++)
          plain[y * 60 + x] = ((x + y) % 4 < 2 ? shades.line : shades.ground)[look] as number;
    }
    const first = bandsOf(frame, 0)[0]?.topPx ?? 0;
    expect([...pixels.data.subarray(60 * Math.max(first, 1))]).toEqual([
      ...plain.subarray(60 * Math.max(first, 1)),
    ]);
  });
});

describe('instants', () => {
  const frame = {
    widthPx: 40,
    heightPx: 30,
    pixelRatio: 1,
    startPs: 0,
    endPs: 40,
    scrollPx: 0,
    pinScrollPx: 0,
  };
  const shades = shadesOf(COLORS);
  const draw = (boxes: Partial<Boxes>, height: number, window = { startPs: 0, endPs: 40 }): Uint32Array => {
    const n = boxes.startPs?.length ?? 0;
    const data = new Uint32Array(40 * 30);
    const all = { ...BOXES, n, rowFirst: Int32Array.of(0, n), ...boxes };
    const places = { y: Float32Array.of(2), height: Uint8Array.of(height) };
    const span = { ...frame, startPs: window.startPs, endPs: window.endPs };
    fillPixels(
      { data, width: 40, height: 30 },
      encodeInstances(all, places, null, window),
      span,
      bandsOf(span, 0),
      shades,
    );
    return data;
  };
  const count = (data: Uint32Array, y: number, color: number): number =>
    data.subarray(y * 40, (y + 1) * 40).filter((pixel) => pixel === color).length;
  const oneAt = (startPs: number, nMerged = 1): Partial<Boxes> => ({
    startPs: Float64Array.of(startPs),
    durationPs: Float64Array.of(0),
    nMerged: Float64Array.of(nMerged),
    style: Uint8Array.of(0),
  });

  it('are diamonds: a point at the top, wide in the middle, alone and over boxes', () => {
    const data = draw(oneAt(20), 17);
    expect([4, 5, 8, 10, 12, 15, 16].map((y) => count(data, y, RED))).toEqual([0, 1, 7, 11, 7, 1, 0]);
    expect(data[10 * 40 + 20]).toBe(RED);
    const over = draw(
      {
        startPs: Float64Array.of(-60, 20),
        durationPs: Float64Array.of(80, 0),
        nMerged: Float64Array.of(1, 1),
        style: Uint8Array.of(1, 0),
      },
      17,
    );
    expect(count(over, 10, RED)).toBe(11);
    expect(over[10 * 40 + 14]).toBe(shades.background);
    expect(over[10 * 40 + 2]).toBe(packed([0, 0, 1]));
  });
  it('are small and at the lower edge where boxes and other instants are close', () => {
    const blue = packed([0, 0, 1]);
    const crowd = draw(
      {
        startPs: Float64Array.of(0, 6, 8, 14, 24, 30),
        durationPs: Float64Array.of(6, 0, 6, 10, 0, 0),
        nMerged: Float64Array.of(1, 1, 1, 1, 1, 1),
        style: Uint8Array.of(1, 0, 1, 1, 0, 0),
      },
      17,
    );
    // Rows 2 to 18. The boxes are whole down to the small diamonds, which are all above the row's end.
    expect([2, 8, 12].map((y) => count(crowd, y, blue))).toEqual([19, 19, 19]);
    expect([2, 8, 12].map((y) => crowd[y * 40 + 6])).toEqual([0, 0, 0]);
    expect(crowd[16 * 40 + 6]).toBe(RED);
    expect(crowd[19 * 40 + 6]).toBe(0);
    // Half way to the other instant: 3 px. Towards the box of 10 px an eighth of it.
    const reds = (from: number, to: number): number =>
      Math.max(
        ...Array.from({ length: 17 }, (_, y) =>
          crowd
            .subarray((y + 2) * 40 + from, (y + 2) * 40 + to)
            .reduce((n, pixel) => n + Number(pixel === RED), 0),
        ),
      );
    expect([reds(0, 14), reds(17, 27), reds(27, 40)]).toEqual([3, 3, 7]);
  });
  it('are a pixel wide in low rows, and merged ones are boxes', () => {
    expect(count(draw(oneAt(20), 7), 5, RED)).toBe(1);
    expect(count(draw(oneAt(20, 3), 17), 10, RED)).toBe(0);
  });
  it('are drawn at the very end of the window, whatever float32 makes of it', () => {
    // 72,697,000,000 is rounded up to 72,697,004,032, past the window's end.
    expect(Math.fround(72_697_000_000)).toBeGreaterThan(72_697_000_001);
    const window = { startPs: 0, endPs: 72_697_000_001 };
    for (const height of [7, 17])
      expect(count(draw(oneAt(72_697_000_000), height, window), 2 + (height >> 1), RED)).toBeGreaterThan(0);
  });
});
