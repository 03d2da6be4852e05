import { describe, expect, it } from 'vitest';
import type { Payload, Table } from '../../api/types';
import type { TableColumn } from '../../widgets/table/model';
import { payloadOf, tableFor } from '../testing';
import { donutsOf, filterOf, initialView, TABLES, withPlainNames } from './model';

describe('pies of compiled operations', () => {
  it('leave out those of one slice, but not the first', () => {
    const of = (name: string[], self_time_ps: number[], fraction: number[]): Table =>
      tableFor(TABLES.by_category, { name, self_time_ps, fraction });
    const [none, one, two] = [of([], [], []), of(['dot'], [4], [1]), of(['a', 'b'], [3, 1], [0.75, 0.25])];
    const tables = { by_category: one, by_op: none, by_bound: two, by_source: none, by_program: one };
    const names = (payload: Payload): string[] => donutsOf(payload).map(({ name }) => name);
    expect(names(payloadOf({ tables }))).toEqual(['by_category', 'by_bound']);
    expect(names(payloadOf({ tables: { ...tables, by_outside: two } }))).toEqual([
      'by_category',
      'by_bound',
      'by_outside',
    ]);
  });

  it('filter the table by what a slice is called', () => {
    expect(filterOf('by_category', 'loop fusion')).toEqual({ 'f.category': '=loop fusion' });
    expect(filterOf('by_rematerialized', 'Rematerialized')).toEqual({ 'f.is_rematerialized': 'yes' });
    expect(filterOf('by_category', 'Other')).toBeNull();
    expect(filterOf('by_source', '(no source line)')).toBeNull();
  });
});

describe('framework operations', () => {
  it('are shown without the empty type after their name', () => {
    const shown = withPlainNames({
      columns: ['op', 'provenance'].map((name) => ({
        name,
        title: name,
        unit: '',
        kind: 'text',
        cell: () => '',
      })),
      nRows: 3,
    });
    const [op, provenance] = shown.columns;
    expect(op?.label).toBeUndefined();
    expect(['jit(f)/mul:', 'jit(f)/mul:Mul', 'jit(f)/mul'].map((text) => provenance?.label?.(text))).toEqual([
      'jit(f)/mul',
      'jit(f)/mul:Mul',
      'jit(f)/mul',
    ]);
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
