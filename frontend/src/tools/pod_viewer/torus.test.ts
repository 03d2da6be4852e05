import { describe, expect, it } from 'vitest';
import { readTable } from '../../api/declared';
import { payloadOf, tableFor } from '../testing';
import { chipNames, coreAt, linkLoads, sendDelays, TABLES, type Core, type Slice } from './model';
import { linkLines, NAMED_FROM_PX, routeOf, shortNames, torusLayout, wayOf } from './torus';

const CUBE: Slice = {
  shape: '4 × 4 × 4 torus',
  generation: 'TPU v4',
  size: [4, 4, 4],
  wraps: [true, true, true],
  linkBytesPerS: 50e9,
};
const MESH: Slice = { ...CUBE, size: [4, 2, 1], wraps: [false, false, false] };

/** Chips of a slice in the order of their numbers, hosts of 2 × 2. */
function chipsOf({ size: [nx, ny, nz] }: Slice, perChip = 1): Core[] {
  return Array.from({ length: nx * ny * nz * perChip }, (_, i) => {
    const chip = Math.floor(i / perChip);
    const [x, y, z] = [chip % nx, Math.floor(chip / nx) % ny, Math.floor(chip / (nx * ny))];
    const host = Math.floor(x / 2) + (nx / 2) * (Math.floor(y / 2) + Math.ceil(ny / 2) * z);
    return {
      name: `h${host} TPU:${i}`,
      host: `h${host}`,
      chip: 0,
      chipId: chip,
      device: i,
      place: [x, y, z],
    };
  });
}

describe('the layout of a slice', () => {
  const layout = torusLayout(chipsOf(CUBE), CUBE, 1200, 620);
  const at = (chip: number): [number, number] => [layout.x[chip] as number, layout.y[chip] as number];

  it('has x to the right, y down and planes of z apart', () => {
    const [[x0, y0], [x1, y1], [x4, y4], [x16]] = [at(0), at(1), at(4), at(16)];
    expect([x1 > x0, y1, x4, y4 > y0]).toEqual([true, y0, x0, true]);
    expect(x16).toBeGreaterThan(at(3)[0] + 1);
    expect(new Set(Array.from(layout.x, (x, i) => `${x},${layout.y[i]}`)).size).toBe(64);
  });

  it('boxes the chips of each host in each plane', () => {
    expect(layout.blocks).toHaveLength(16);
    const box = layout.blocks.find(({ host }) => host === 'h9');
    const [left, top] = at(34);
    expect([box?.x, box?.y]).toEqual([left - 0.14, top - 0.14].map((v) => expect.closeTo(v, 4) as number));
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeCloseTo(at(39)[0] + 1.14, 4);
  });

  it('ends each row and column in two stubs of wrap links, and links planes', () => {
    const lines = layout.torus?.lines ?? [];
    // 4 planes × (4 rows + 4 columns) × 2 ends, and both ends of z.
    expect(lines.filter(({ isWrap }) => isWrap)).toHaveLength(4 * 8 * 2 + 2);
    expect(layout.torus?.labels.filter(({ text }) => /^to z/.test(text)).map(({ text }) => text)).toEqual([
      'to z = 3',
      'to z = 0',
    ]);
  });

  it('has no wrap links where an axis has none', () => {
    const flat = torusLayout(chipsOf(MESH), MESH, 800, 620);
    expect(flat.torus?.lines.some(({ isWrap }) => isWrap)).toBe(false);
    const one = torusLayout(chipsOf(MESH), { ...MESH, wraps: [false, true, false] }, 800, 620);
    expect(one.torus?.lines.filter(({ isWrap }) => isWrap)).toHaveLength(2 * 4);
  });

  it('puts the cores of a chip side by side', () => {
    const two = torusLayout(chipsOf(MESH, 2), MESH, 800, 620);
    expect([(two.x[1] as number) - (two.x[0] as number), two.y[1]]).toEqual([expect.closeTo(1, 4), two.y[0]]);
    expect((two.x[2] as number) - (two.x[1] as number)).toBeGreaterThan(1);
    expect(two.torus?.chipWidth).toBe(2);
  });

  it('outlines the chips that were not captured', () => {
    const part = torusLayout(chipsOf(MESH).slice(2, 5), MESH, 800, 620);
    expect(part.torus?.missing).toHaveLength(5);
    expect(part.torus?.missing[0]).toEqual(part.torus?.at([0, 0, 0]));
  });

  it('finds the core under the pointer', () => {
    const [x, y] = at(39);
    expect([coreAt(layout, x + 0.5, y + 0.5), coreAt(layout, x + 1.2, y + 0.5)]).toEqual([39, -1]);
  });

  it.each([
    [[2, 2, 1], 4],
    [[4, 4, 4], 4],
    [[16, 16, 1], 8],
    [[8, 8, 16], 4],
    [[32, 32, 1], 4],
  ] as [Slice['size'], number][])('fits %j chips into the box', (size, leastPx) => {
    const slice: Slice = { ...CUBE, size };
    const { columns, rows } = torusLayout(chipsOf(slice), slice, 940, 620);
    const cell = Math.min(940 / columns, 620 / rows);
    expect(cell).toBeGreaterThan(leastPx);
  });

  it('names hosts and chips of 64 chips in a narrow page', () => {
    const { columns, rows } = torusLayout(chipsOf(CUBE), CUBE, 600, 620);
    expect(Math.min(600 / columns, 620 / rows)).toBeGreaterThan(NAMED_FROM_PX);
  });
});

describe('the way between chips', () => {
  const way = (slice: Slice, from: number[], to: number[]): [number, number[], boolean[]] => {
    const { hops, steps, isWrapped } = wayOf(slice, from, to);
    return [hops, steps, isWrapped];
  };

  it('is the shorter one around a ring, straight where both are equal', () => {
    expect(way(CUBE, [3, 1, 2], [0, 1, 2])).toEqual([1, [1, 0, 0], [true, false, false]]);
    expect(way(CUBE, [0, 0, 0], [0, 0, 3])).toEqual([1, [0, 0, -1], [false, false, true]]);
    expect(way(CUBE, [0, 0, 0], [2, 0, 0])).toEqual([2, [2, 0, 0], [false, false, false]]);
    expect(way(MESH, [3, 0, 0], [0, 1, 0])).toEqual([4, [-3, 1, 0], [false, false, false]]);
  });

  it('is drawn along the link, below the row for a wrap link, dashed for several links', () => {
    const { torus } = torusLayout(chipsOf(CUBE), CUBE, 1200, 620);
    if (!torus) throw new Error('no torus');
    const wrap = routeOf(torus, CUBE, [3, 1, 2], [0, 1, 2]);
    const [first, last] = [wrap.points[0], wrap.points.at(-1)];
    const [[x3, y3], [x0, y0]] = [torus.at([3, 1, 2]), torus.at([0, 1, 2])];
    expect([first, last, wrap.points.length, wrap.isGuess]).toEqual([
      [x3 + 1, y3 + 0.5],
      [x0, y0 + 0.5],
      6,
      false,
    ]);
    expect(Math.max(...wrap.points.map(([, y]) => y))).toBeGreaterThan(y3 + 1);
    expect(routeOf(torus, CUBE, [1, 0, 0], [0, 0, 0]).points).toEqual([
      [torus.at([1, 0, 0])[0], torus.at([1, 0, 0])[1] + 0.5],
      [torus.at([0, 0, 0])[0] + 1, torus.at([0, 0, 0])[1] + 0.5],
    ]);
    expect(routeOf(torus, CUBE, [0, 3, 0], [0, 0, 0]).points).toHaveLength(6);
    expect(routeOf(torus, CUBE, [0, 0, 0], [0, 1, 0]).points[0]?.[1]).toBeCloseTo(
      torus.at([0, 0, 0])[1] + 1,
      4,
    );
    expect(routeOf(torus, CUBE, [0, 0, 0], [0, 0, 1]).points).toHaveLength(4);
    expect(routeOf(torus, CUBE, [0, 0, 0], [1, 1, 0]).isGuess).toBe(true);
    expect(routeOf(torus, CUBE, [2, 1, 0], [2, 1, 0]).points).toEqual([]);
  });
});

describe('names', () => {
  it('of hosts leave out what all begin with', () => {
    expect([...shortNames(['train-w-9', 'train-w-10', 'train-w-1']).values()]).toEqual([
      'host 9',
      'host 10',
      'host 1',
    ]);
    expect([...shortNames(['a-eu', 'a-us']).values()]).toEqual(['eu', 'us']);
    expect([...shortNames(['alone-3']).values()]).toEqual(['alone-3']);
    expect([...shortNames(['t12', 't1']).values()]).toEqual(['host 12', 'host 1']);
  });

  it('of cores are their chips’ numbers', () => {
    const cores = chipsOf(MESH, 2);
    expect(chipNames(cores)?.get('h0 TPU:3')).toBe('chip 1, core 1');
    expect(chipNames(chipsOf(MESH))?.get('h0 TPU:5')).toBe('chip 5');
    expect(chipNames(cores.map((core) => ({ ...core, place: null })))).toBeNull();
    expect(chipNames([])).toBeNull();
  });
});

it('means the send delays of what a core sends', () => {
  const channels = tableFor(TABLES.channels, {
    source: ['a', 'a', 'b'],
    source_row: [0, 0, 1],
    send_delay_ps: [10, 40, 7],
    n_per_step: [3, 1, 2],
  });
  const rows = readTable(payloadOf({ tables: { channels } }), TABLES.channels);
  expect([...sendDelays(rows, 3)]).toEqual([17.5, 7, 0]);
});

describe('the links by latency', () => {
  const loadsOf = (
    cells: Partial<Record<'source_row' | 'target_row' | 'latency_ps' | 'hops', (number | null)[]>>,
  ) => {
    const channels = tableFor(TABLES.channels, cells);
    return linkLoads(readTable(payloadOf({ tables: { channels } }), TABLES.channels), chipsOf(CUBE));
  };

  it('have the longest latency of both directions, and only neighbors count', () => {
    const loads = loadsOf({
      source_row: [0, 1, 3, 0, 5],
      target_row: [1, 0, 0, 2, 6],
      latency_ps: [10, 30, 20, 99, null],
      hops: [1, 1, 1, 2, 1],
    });
    expect(
      loads?.links.map(({ source, target, row, latencyPs }) => [source, target, row, latencyPs]),
    ).toEqual([
      [1, 0, 1, 30],
      [3, 0, 2, 20],
    ]);
    expect(loads?.range).toEqual([20, 30]);
  });

  it('are none without places, hops or latencies', () => {
    expect(loadsOf({ source_row: [0], target_row: [1], latency_ps: [10] })).toBeNull();
    expect(loadsOf({ source_row: [0], target_row: [1], latency_ps: [null], hops: [1] })).toBeNull();
    expect(loadsOf({ source_row: [0], target_row: [99], latency_ps: [5], hops: [1] })).toBeNull();
  });

  it('are a line within a plane, two stubs over the end of a ring, nothing to another plane', () => {
    const { torus } = torusLayout(chipsOf(CUBE), CUBE, 1200, 620);
    if (!torus) throw new Error('no torus');
    const [[x1, y1], [x0, y0]] = [torus.at([1, 0, 0]), torus.at([0, 0, 0])];
    expect(linkLines(torus, CUBE, [1, 0, 0], [0, 0, 0])).toEqual([
      [
        [x1, y1 + 0.5],
        [x0 + 1, y0 + 0.5],
      ],
    ]);
    const wrap = linkLines(torus, CUBE, [3, 1, 2], [0, 1, 2]);
    const [[x3, y3], [xFirst]] = [torus.at([3, 1, 2]), torus.at([0, 1, 2])];
    expect(wrap.map(([from]) => from)[0]).toEqual([x3 + 1, y3 + 0.5]);
    expect(wrap.map(([, to]) => to)[1]).toEqual([xFirst, y3 + 0.5]);
    expect(linkLines(torus, CUBE, [0, 0, 0], [0, 0, 1])).toEqual([]);
    expect(linkLines(torus, CUBE, [0, 0, 0], [1, 1, 0])).toEqual([]);
    expect(linkLines(torus, CUBE, [0, 0, 0], [0, 0, 0])).toEqual([]);
  });
});
