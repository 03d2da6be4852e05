import { describe, expect, it } from 'vitest';
import type { TableColumn } from '../../widgets/table/model';
import { payloadOf, tableOf } from '../testing';
import { donutsOf, filterOf, initialView } from './model';

describe('pies of compiled operations', () => {
  it('leave out those of one slice, but not the first', () => {
    const one = tableOf({ name: ['dot'], self_time_ps: [4], fraction: [1] });
    const two = tableOf({ name: ['HBM', 'Compute'], self_time_ps: [3, 1], fraction: [0.75, 0.25] });
    expect(
      donutsOf(payloadOf({ tables: { by_category: one, by_bound: two, by_program: one } })).map(
        (donut) => donut.name,
      ),
    ).toEqual(['by_category', 'by_bound']);
  });

  it('filter the table by what a slice is called', () => {
    expect(filterOf('by_category', 'loop fusion')).toEqual({ 'f.category': '=loop fusion' });
    expect(filterOf('by_rematerialized', 'Rematerialized')).toEqual({ 'f.is_rematerialized': 'yes' });
    expect(filterOf('by_category', 'Other')).toBeNull();
    expect(filterOf('by_source', '(no source line)')).toBeNull();
  });
});

describe('the table', () => {
  const column = (name: string, cells: string[] = ['x', 'x']): TableColumn => ({
    name,
    title: name,
    unit: '',
    kind: 'text',
    cell: (row) => cells[row] ?? null,
  });
  it('shows the program only where there are several', () => {
    const hidden = (cells: string[]): boolean =>
      initialView(
        { columns: [column('program', cells), column('op'), column('category')], nRows: 2 },
        [],
      ).hidden.has('program');
    expect(hidden(['a', 'a'])).toBe(true);
    expect(hidden(['a', 'b'])).toBe(false);
  });
});
