import { describe, expect, it } from 'vitest';
import type { TableColumn } from '../../widgets/table/model';
import { readTable } from '../../api/declared';
import { payloadOf, tableFor } from '../testing';
import { groupingOf, initialView, isComputed, longestLaunch, TABLES, withoutTable } from './model';

describe('kernels', () => {
  it('are grouped as the link says, else not at all', () => {
    const payload = payloadOf({
      tables: {
        kernels: tableFor(TABLES.kernels, { kernel: ['k', 'l', 'm'] }),
        by_library: tableFor(TABLES.by_library, { library: ['cuBLAS', 'cuDNN'] }),
      },
    });
    expect(groupingOf('nonsense').name).toBe('launch');
    expect(groupingOf(undefined).read(payload).table.n_rows).toBe(3);
    const { table, nameOf } = groupingOf('library').read(payload);
    expect([table.n_rows, nameOf(1)]).toEqual([2, 'cuDNN']);
    expect(() => groupingOf('op').read(payload)).toThrow('has no table by_op');
  });

  it('begin without columns that carry no information, but keep tensor core use', () => {
    const column = (name: string): TableColumn => ({
      name,
      title: name,
      unit: '',
      kind: 'bool',
      cell: () => false,
    });
    const data = {
      columns: ['kernel', 'grid', 'longest_host', 'occupancy_fraction', 'uses_tensor_cores'].map(column),
      nRows: 2,
    };
    expect([...initialView(data, ['occupancy_fraction', 'uses_tensor_cores']).hidden]).toEqual([
      'grid',
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
    const table = tableFor(TABLES.kernels, {
      kernel: ['k', 'l'],
      longest_host: ['h', null],
      longest_start_ps: [10, 20],
      max_ps: [40, 5],
      is_occupancy_computed: [true, false],
    });
    const kernels = readTable(payloadOf({ tables: { kernels: table } }), TABLES.kernels);
    expect(longestLaunch(kernels, 0)).toEqual({ host: 'h', params: { start_ps: '0', end_ps: '90' } });
    expect(longestLaunch(kernels, 1)).toBeNull();
    expect([0, 1].map((row) => isComputed(kernels, row))).toEqual([true, false]);
  });
});
