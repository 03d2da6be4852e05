// @vitest-environment happy-dom
import { describe, expect, it } from 'vitest';
import type { TableColumn } from './model';
import { fitWidths, naturalWidths } from './widths';

const column = (name: string, kind: TableColumn['kind'], unit = ''): TableColumn => ({
  name,
  title: name,
  kind,
  unit,
  cell: () => (kind === 'text' ? 'x'.repeat(30) : 0.5),
});
const columns = [
  column('name', 'text'),
  column('share', 'number', 'fraction'),
  column('time', 'number', 'ps'),
];
const natural = new Map([
  ['name', 200],
  ['share', 150],
  ['time', 80],
]);
const sum = (widths: number[]): number => widths.reduce((total, width) => total + width, 0);

describe('columns', () => {
  it('are as wide as their cells', () => {
    const widths = naturalWidths({ columns, nRows: 3 });
    expect(widths.get('name')).toBeGreaterThan(widths.get('time') ?? 0);
    expect(widths.get('name')).toBeLessThan(400);
  });
  it('give spare room to texts', () =>
    expect(fitWidths(columns, natural, 530, false)).toEqual([300, 150, 80]));
  it('keep their width where the table may scroll, but for long texts', () =>
    expect(fitWidths(columns, new Map([...natural, ['name', 350]]), 300, false)).toEqual([220, 150, 80]));
  it('give way where it may not, bars first, then texts', () => {
    expect(fitWidths(columns, natural, 400, true)).toEqual([200, 120, 80]);
    const widths = fitWidths(columns, natural, 330, true);
    expect(sum(widths)).toBeLessThanOrEqual(330);
    expect(widths.slice(1)).toEqual([102, 80]);
  });
  it('stay within reason where there is no room at all', () =>
    expect(Math.min(...fitWidths(columns, natural, 10, true))).toBe(48));
});
