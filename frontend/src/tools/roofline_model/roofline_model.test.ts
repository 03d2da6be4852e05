import { describe, expect, it } from 'vitest';
import { payloadOf, scalarsOf, tableFor } from '../testing';
import {
  BOUND,
  distinctPoints,
  extentOf,
  isPlaced,
  mainPoints,
  peakOf,
  pointsOf,
  pointsShown,
  powersOfTen,
  roofLine,
  roofsOf,
  sizeOf,
  stepChoices,
  TABLES,
  type Roof,
} from './model';

const PAYLOAD = payloadOf({
  scalars: scalarsOf({ peak_flops_per_s: 1e14 }),
  tables: {
    ops: tableFor(TABLES.ops, {
      op: ['dot', 'copy'],
      category: ['dot', 'copy'],
      program: ['p', 'p'],
      bound_by: ['HBM', 'HBM'],
      total_self_time_ps: [8, 2],
      self_fraction: [0.8, 0.2],
      flop_rate_flops_per_s: [2e12, 0],
      bound_flops_per_byte: [4, 0],
      vmem_read_flops_per_byte: [9, null],
    }),
    programs: tableFor(TABLES.programs, {
      step: ['Total', 'Average', '7'],
      total_time_ps: [10, 5, 5],
      flop_rate_flops_per_s: [1e12, 1e12, 1e12],
      bound_flops_per_byte: [3, 3, 3],
    }),
    roofs: tableFor(TABLES.roofs, { name: ['hbm'], title: ['HBM'], bytes_per_s: [1e12] }),
  },
});
const HBM: Roof = { name: 'hbm', title: 'HBM', bytesPerS: 1e12 };

describe('points', () => {
  it('are operations, the program and its steps', () => {
    expect(pointsOf(PAYLOAD, BOUND).map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'op dot',
      'op copy',
      'program Total',
      'program Average',
      'step 7',
    ]);
  });
  it('have a place only with FLOPs and bytes', () => {
    expect(pointsOf(PAYLOAD, BOUND).filter(isPlaced)).toHaveLength(4);
    expect(
      pointsOf(PAYLOAD, 'vmem_read')
        .filter(isPlaced)
        .map(({ name, intensity }) => [name, intensity]),
    ).toEqual([['dot', 9]]);
    expect(pointsOf(PAYLOAD, 'cmem_read').filter(isPlaced)).toEqual([]); // no column of it
    expect(pointsOf(PAYLOAD, 'toString').filter(isPlaced)).toEqual([]); // no memory
  });
  it('are all shown, or of program and steps only the chosen one', () => {
    const names = (show: string, step: string, passes: (row: number) => boolean = () => true): string[] =>
      pointsShown(pointsOf(PAYLOAD, BOUND), { show, step, passes }).map(({ name }) => name);
    expect(names('all', '')).toEqual(['dot', 'copy', 'Total', 'Average', '7']);
    expect(names('all', '7')).toEqual(['dot', 'copy', '7']);
    expect(names('steps', 'Average')).toEqual(['Average']);
    expect(names('ops', '7', (row) => row === 1)).toEqual(['copy']);
    expect(names('steps', '8')).toEqual(['Total', 'Average', '7']); // no such step: all of them
    expect(stepChoices(PAYLOAD).map(({ title }) => title)).toEqual(['the whole capture', 'average', '7']);
  });
  it('are of many operations those that took most time, and the chosen one', () => {
    const points = pointsOf(PAYLOAD, BOUND);
    const names = (most: number, kept = -1): string[] =>
      mainPoints(points, most, kept).map(({ name }) => name);
    expect(mainPoints(points, 2, -1)).toBe(points);
    expect(names(1)).toEqual(['dot', 'Total', 'Average', '7']);
    expect(names(1, 1)).toEqual(['dot', 'copy', 'Total', 'Average', '7']);
  });
  it('are drawn once where they look like one, and the chosen one always', () => {
    const [dot] = pointsOf(PAYLOAD, BOUND).filter(isPlaced);
    if (!dot) throw new Error('no point has a place');
    const [twin, far, other] = [
      { ...dot, row: 7 },
      { ...dot, intensity: dot.intensity * 2 },
      { ...dot, category: 'other' },
    ];
    const extent = extentOf([dot, far], [], null);
    expect(distinctPoints([dot, twin, far, other], extent, undefined)).toEqual([dot, far, other]);
    expect(distinctPoints([dot, twin], extent, twin)).toEqual([dot, twin]);
  });
  it('grow with their share of the time', () => {
    expect(sizeOf(1)).toBeGreaterThan(sizeOf(0.1));
    expect(sizeOf(null)).toBe(9);
  });
});

describe('roofs', () => {
  it('are read from their table', () => {
    expect(roofsOf(PAYLOAD)).toEqual([HBM]);
    expect(peakOf(PAYLOAD)).toBe(1e14);
  });
  it('rise to the ridge and are flat beyond', () => {
    expect(roofLine(HBM, 1e14, { x: [1, 1000], y: [1e12, 1e15] })).toEqual([
      [1, 1e12],
      [100, 1e14],
      [1000, 1e14],
    ]);
  });
  it('begin where they come into sight, and have no flat part without a peak', () => {
    expect(roofLine(HBM, null, { x: [0.01, 10], y: [1e12, 1e15] })).toEqual([
      [1, 1e12],
      [10, 1e13],
    ]);
    expect(roofLine(HBM, 1e14, { x: [0.001, 0.01], y: [1e12, 1e15] })).toEqual([]);
  });
  it('and all points are within whole decades', () => {
    const { x, y } = extentOf(pointsOf(PAYLOAD, BOUND), [HBM], 1e14);
    expect([x, y]).toEqual([
      [1, 1000],
      [1e11, 1e15],
    ]);
  });
  it('have labels at powers of ten, few of them', () => {
    expect(powersOfTen([0.01, 1000])).toEqual([0.01, 0.1, 1, 10, 100, 1000]);
    expect(powersOfTen([1e5, 1e16])).toEqual([1e6, 1e8, 1e10, 1e12, 1e14, 1e16]);
    expect(powersOfTen([10, 10])).toEqual([10]);
  });
});
