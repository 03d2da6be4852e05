import { describe, expect, it } from 'vitest';
import { readTable } from '../../api/declared';
import { payloadOf, tableFor } from '../testing';
import { cellRects, paintCells, ramp } from './pixels';
import {
  coreAt,
  coresOf,
  layoutOf,
  meanOf,
  peersOf,
  rangeOf,
  shareOf,
  sharedBy,
  shownValues,
  slowestFirst,
  stepOf,
  unitOf,
  TABLES,
  type Core,
} from './model';

function pod(nHosts: number, nChips: number, perChip: number): Core[] {
  return Array.from({ length: nHosts * nChips * perChip }, (_, i) => ({
    name: `c${i}`,
    host: `h${Math.floor(i / (nChips * perChip))}`,
    chip: Math.floor(i / perChip) % nChips,
    chipId: null,
    device: i,
    place: null,
  }));
}

describe('the map', () => {
  it('gives every core a cell of its own, cores of a chip side by side, hosts apart', () => {
    const layout = layoutOf(pod(4, 4, 2), 800, 400);
    const places = new Set(Array.from(layout.x, (x, i) => `${x},${layout.y[i]}`));
    expect(places.size).toBe(32);
    expect([layout.x[0], layout.y[0], layout.x[1], layout.y[1]]).toEqual([0, 0, 1, 0]);
    expect([layout.x[4], layout.y[4]]).toEqual([0, 1]);
    expect(layout.blocks.map(({ host }) => host)).toEqual(['h0', 'h1', 'h2', 'h3']);
    expect(layout.x[8]).toBeGreaterThan(4);
  });

  it('fits 4,096 cores into the box with cells of some pixels', () => {
    const layout = layoutOf(pod(512, 4, 2), 900, 420);
    expect(Math.min(900 / layout.columns, 420 / layout.rows)).toBeGreaterThan(6);
  });

  it('finds the core under the pointer, none between hosts', () => {
    const layout = layoutOf(pod(2, 1, 1), 400, 100);
    expect(coreAt(layout, 0.5, 0.5)).toBe(0);
    expect(coreAt(layout, 1.3, 0.5)).toBe(-1);
    expect(coreAt(layout, 1.7, 0.5)).toBe(1);
  });
});

describe('words', () => {
  it('are those of what is compared', () => {
    const unit = (title: string): string => {
      const table = tableFor(TABLES.cores, { core: ['a'] });
      const columns = table.columns.map((one) => (one.name === 'core' ? { ...one, title } : one));
      return unitOf(readTable(payloadOf({ tables: { cores: { ...table, columns } } }), TABLES.cores));
    };
    expect(['Core', 'GPU', 'Rank'].map(unit)).toEqual(['core', 'GPU', 'rank']);
  });
});

describe('values', () => {
  it('of all are the mean of those that are known', () => {
    expect(meanOf((row) => [4, null, 9, 2][row] ?? null, 4)).toBe(5);
    expect(meanOf(() => null, 3)).toBeNull();
  });

  it('are those of a step, or the mean of all', () => {
    const cells = [1, 3, 10, 30];
    expect([...shownValues(cells, 2, 1)]).toEqual([3, 30]);
    expect([...shownValues(cells, 2, -1)]).toEqual([2, 20]);
    expect(rangeOf(cells)).toEqual([1, 30]);
    expect(rangeOf([])).toEqual([0, 0]);
  });

  it('that hardly differ look alike', () => {
    const range = rangeOf([1000, 1001]);
    expect(range[0]).toBeCloseTo(975.5, 1);
    expect(range[1]).toBeCloseTo(1025.5, 1);
    expect(shareOf(1001, range) - shareOf(1000, range)).toBeLessThan(0.05);
  });

  it('are one where they differ by noise alone, so that no scale is drawn over it', () => {
    expect(sharedBy([92_500, 92_504, 92_498, 92_501])).toBeCloseTo(92_501, 0);
    expect(sharedBy([1000, 1020])).toBeNull();
    expect(sharedBy([])).toBeNull();
    expect(sharedBy([0, 0])).toBe(0);
  });

  it('have a place in their range', () => {
    expect(shareOf(5, [0, 10])).toBe(0.5);
    expect(shareOf(11, [0, 10])).toBe(1);
    expect(shareOf(3, [3, 3])).toBe(0.5);
  });
});

describe('the link', () => {
  it('names a step that there is, else all', () => {
    expect([stepOf('3', 4), stepOf('4', 4), stepOf('x', 4), stepOf(undefined, 4)]).toEqual([3, -1, -1, -1]);
  });
});

describe('groups', () => {
  it('are those of the program’s devices', () => {
    const cores = pod(1, 4, 1).map((core, i) => ({ ...core, device: i + 4 }));
    expect(peersOf('{0,4} {1,5,6} {2} {3,7}', cores, 1)).toEqual([1, 2]);
    expect(peersOf('{0,1}', cores, 0)).toEqual([]);
    expect(peersOf('all', cores, 0)).toEqual([0, 1, 2, 3]);
  });
});

it('keeps the slowest of very many cores', () => {
  const cores = tableFor(TABLES.cores, {
    core: ['a', 'b', 'c'],
    host: ['h', 'h', 'h'],
    chip: [0, 1, 2],
    own_ps: [5, 9, 7],
  });
  const rows = readTable(payloadOf({ tables: { cores } }), TABLES.cores);
  expect(slowestFirst(rows, 2)).toEqual([1, 2]);
  expect(slowestFirst(rows, 3)).toEqual([0, 1, 2]);
  expect(coresOf(rows)[1]).toEqual({ name: 'b', host: 'h', chip: 1, chipId: null, device: 1, place: null });
});

describe('the picture of the map', () => {
  const at = { ...layoutOf(pod(2, 1, 2), 100, 100), cell: 10, width: 60, height: 40 };

  it('has each core at its own pixels, apart by one where there is room', () => {
    expect([...cellRects(at, 1)].slice(0, 8)).toEqual([4, 4, 13, 13, 14, 4, 23, 13]);
    expect([...cellRects({ ...at, cell: 5 }, 2)].slice(0, 4)).toEqual([8, 8, 18, 18]);
  });

  it('changes only the cells’ colors, from one end of the range to the other', () => {
    const [colors, pixels] = [ramp([0, 0, 0], [1, 0, 0], 3), new Uint32Array(60 * 40).fill(7)];
    expect([...new Uint8Array(colors.buffer)]).toEqual([0, 0, 0, 255, 128, 0, 0, 255, 255, 0, 0, 255]);
    const rects = cellRects(at, 1);
    paintCells(pixels, 60, rects, Float64Array.of(1, 2, 3, 1), [1, 3], colors);
    const corner = (core: number): number =>
      60 * (rects[4 * core + 1] as number) + (rects[4 * core] as number);
    expect([0, 1, 2].map((core) => pixels[corner(core)])).toEqual([...colors]);
    expect([pixels[0], pixels[4 * 60 + 13], pixels[13 * 60 + 4]]).toEqual([7, 7, 7]);
  });

  it('stays within its bounds', () => {
    const pixels = new Uint32Array(60 * 5);
    paintCells(
      pixels,
      60,
      Int32Array.of(50, 2, 70, 30),
      Float64Array.of(1),
      [0, 1],
      ramp([0, 0, 0], [1, 1, 1], 2),
    );
    expect([...pixels].filter(Boolean).length).toBe(3 * 10);
  });
});
