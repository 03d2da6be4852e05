import { describe, expect, it } from 'vitest';
import type { TableColumn } from '../../widgets/table/model';
import { tableOf } from '../testing';
import { groupingOf, initialView, longestLaunch, withoutTable } from './model';

describe('kernels', () => {
  it('are grouped as the link says, else not at all', () => {
    expect(groupingOf('library').table).toBe('by_library');
    expect(groupingOf('nonsense').name).toBe('launch');
    expect(groupingOf(undefined).table).toBe('kernels');
  });

  it('begin without columns that tell nothing, but keep whether tensor cores were used', () => {
    const column = (name: string): TableColumn => ({
      name,
      title: name,
      unit: '',
      kind: 'bool',
      cell: () => false,
    });
    const data = {
      columns: ['kernel', 'longest_host', 'occupancy_fraction', 'uses_tensor_cores'].map(column),
      nRows: 2,
    };
    expect([...initialView(data, ['occupancy_fraction', 'uses_tensor_cores']).hidden]).toEqual([
      'longest_host',
      'occupancy_fraction',
    ]);
  });

  it('drop the parameters of one table when another is shown', () => {
    expect(withoutTable({ q: 'x', 'f.library': '=cuBLAS', by: 'op', sort: '-n' })).toEqual({
      q: undefined,
      'f.library': undefined,
      sort: undefined,
    });
  });

  it('lead to the longest launch with as much time around it', () => {
    const table = tableOf({
      kernel: ['k', 'l'],
      longest_host: ['h', null],
      longest_start_ps: [10, 20],
      max_ps: [40, 5],
    });
    expect(longestLaunch(table, 0)).toEqual({ host: 'h', params: { start_ps: '0', end_ps: '90' } });
    expect(longestLaunch(table, 1)).toBeNull();
  });
});
