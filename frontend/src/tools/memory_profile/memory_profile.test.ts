import { describe, expect, it } from 'vitest';
import { readTable } from '../../api/declared';
import { payloadOf, tableFor } from '../testing';
import { seriesOf } from './history_option';
import {
  clamped,
  drawnWindow,
  hiddenAtFirst,
  levelBefore,
  memoriesOf,
  pointsOf,
  sparkPath,
  TABLES,
  type MemoryRow,
} from './model';

const window = { startPs: 1_000_000, endPs: 3_000_000 };

describe('the history', () => {
  it('fills the window: the level before it on the left, the last one on the right', () => {
    const timeline = tableFor(TABLES.timeline, {
      start_ps: [500_000, 2_000_000],
      stack_bytes: [0, 0],
      heap_bytes: [5, 9],
      free_bytes: [5, 1],
      fragmentation_fraction: [0, 0.5],
    });
    const points = clamped(pointsOf(readTable(payloadOf({ tables: { timeline } }), TABLES.timeline)), window);
    expect(points.map(({ ps, heap }) => [ps, heap])).toEqual([
      [1_000_000, 5],
      [2_000_000, 9],
      [3_000_000, 9],
    ]);
    expect(clamped([], window)).toEqual([]);
  });

  it('of a capture that is empty for long begins shortly before the first event', () => {
    const point = { ps: 2_000_000, stack: 0, heap: 9, free: 1, held: null, fragmentation: 0 };
    expect(drawnWindow([point], window)).toEqual({ startPs: 1_960_000, endPs: 3_000_000 });
    expect(drawnWindow([{ ...point, ps: 1_100_000 }], window)).toBe(window);
    expect(drawnWindow([], window)).toBe(window);
  });

  it('begins with what was allocated before the capture', () => {
    const before = (activity: string, size: number | null): unknown => {
      const timeline = readTable(
        payloadOf({
          tables: {
            timeline: tableFor(TABLES.timeline, {
              start_ps: [2_000_000],
              stack_bytes: [0],
              heap_bytes: [9],
              free_bytes: [1],
              fragmentation_fraction: [0.5],
              activity: [activity],
              allocation_bytes: [size],
            }),
          },
        }),
        TABLES.timeline,
      );
      const level = levelBefore(timeline, pointsOf(timeline), 1_960_000);
      return level && [level.ps, level.heap, level.free];
    };
    expect(before('Allocation', 4)).toEqual([1_960_000, 5, 5]);
    expect(before('Deallocation', 1)).toEqual([1_960_000, 10, 0]);
    expect(before('Allocation', 9)).toBeNull(); // nothing was in use
    expect(before('Allocation', null)).toBeNull();
  });

  it('hides free memory at first if it would flatten all else', () => {
    const row = (usedFraction: number): MemoryRow => ({
      row: 0,
      fullName: 'h/m',
      name: 'm',
      host: 'h',
      peakBytes: 1,
      capacityBytes: 1,
      usedFraction,
      floorRise: 0,
      points: [],
    });
    expect([...hiddenAtFirst(row(0.01))]).toEqual(['free']);
    expect([...hiddenAtFirst(row(0.5))]).toEqual([]);
  });
});

describe('memories', () => {
  it('have their small histories', () => {
    const memories = tableFor(TABLES.memories, {
      host: ['a', 'a'],
      memory: ['GPU_0_bfc', 'GPU_1_bfc'],
      peak_bytes: [9, 5],
      used_fraction: [0.9, 0.5],
      capacity_bytes: [10, 10],
      floor_rise_bytes: [0, null],
    });
    const history = tableFor(TABLES.history, { row: [0, 0, 1], start_ps: [0, 5, 0], used_bytes: [3, 9, 5] });
    const found = memoriesOf(payloadOf({ tables: { memories, history } }));
    expect(found.map(({ fullName, floorRise, points }) => [fullName, floorRise, points.length])).toEqual([
      ['a/GPU_0_bfc', 0, 2],
      ['a/GPU_1_bfc', null, 1],
    ]);
  });

  it('are drawn up to their own peak', () => {
    expect(
      sparkPath(
        [
          { ps: 0, used: 5 },
          { ps: 50, used: 10 },
        ],
        100,
      ),
    ).toBe('M0.00 100V50.00H50.00V0.00H100V100Z');
    expect(sparkPath([], 100)).toBe('');
  });

  it('leaves out series that the trace lacks, and a stack that is always empty', () => {
    const point = { ps: 0, stack: 0, heap: 5, free: null, held: null, fragmentation: null };
    expect(seriesOf([point]).map(({ name }) => name)).toEqual(['heap']);
    expect(seriesOf([point, { ...point, stack: 1, free: 0, held: 9 }]).map(({ name }) => name)).toEqual([
      'stack',
      'heap',
      'free',
      'held',
    ]);
  });
});
