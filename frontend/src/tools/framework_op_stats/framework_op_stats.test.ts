import { describe, expect, it } from 'vitest';
import type { Payload, Table } from '../../api/types';
import type { TableColumn } from '../../widgets/table/model';
import { isPath, shownShares } from '../donuts';
import { countsIdle, donutsOf, initialView } from './model';

function shares(rows: [string, number][]): Table {
  return {
    title: 'On host: by type',
    note: '',
    n_rows: rows.length,
    columns: [
      {
        name: 'name',
        title: 'Name',
        unit: '',
        kind: 'text',
        strings: rows.map(([name]) => name),
        codes: rows.map((_, i) => i),
      },
      {
        name: 'self_time_ps',
        title: 'Self time',
        unit: 'ps',
        kind: 'number',
        values: rows.map(([, share]) => share * 1e9),
      },
      {
        name: 'fraction',
        title: 'Share',
        unit: 'fraction',
        kind: 'number',
        values: rows.map(([, share]) => share),
      },
    ],
  };
}

const payload = (tables: Payload['tables']): Payload => ({
  tool: 'framework_op_stats',
  run: 'r',
  hosts: [],
  verdict: null,
  scalars: {},
  tables,
  diagnostics: [],
});

describe('donuts', () => {
  it('tell paths, whose ends count, from types of kernels', () => {
    expect(['Iterator::Root::Map', 'a/b/Relu', 'jit(f)/add', '/src/train.py:12'].map(isPath)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(
      ['void Eigen::internal::EigenMetaKernel<float>', 'PyFunc', 'a::', '/', 'TensorFlow / Eigen'].map(
        isPath,
      ),
    ).toEqual([false, false, false, false, false]);
  });

  it('are there for what has time, device first, idle and other grey', () => {
    const donuts = donutsOf(
      payload({
        host_by_type: shares([
          ['MatMul', 0.5],
          ['IDLE', 0.3],
          ['Other', 0.2],
          ['None', 0],
        ]),
        device_by_op: shares([['fusion', 1]]),
        device_by_type: shares([]),
      }),
    );
    expect(donuts.map(({ name }) => name)).toEqual(['device_by_op', 'host_by_type']);
    expect(donuts[1]?.slices.map(({ title, token }) => [title, token])).toEqual([
      ['MatMul', '--q-0'],
      ['IDLE', '--c-idle'],
      ['Other', '--c-idle'],
    ]);
  });

  it('share out anew when a slice is hidden', () => {
    const slices =
      donutsOf(
        payload({
          host_by_op: shares([
            ['a', 0.6],
            ['b', 0.3],
            ['c', 0.1],
          ]),
        }),
      )[0]?.slices ?? [];
    expect([...shownShares(slices, new Set(['0'])).values()].map((share) => share.toFixed(2))).toEqual([
      '0.75',
      '0.25',
    ]);
    expect(shownShares(slices, new Set(['0', '1', '2'])).size).toBe(0);
  });
});

describe('the table', () => {
  const column = (name: string): TableColumn => ({
    name,
    title: name,
    unit: '',
    kind: 'text',
    cell: () => null,
  });
  it('hides at first what few need and what is unknown, but never all', () => {
    const data = { columns: ['operation', 'eager', 'bound_by'].map(column), nRows: 1 };
    expect([...initialView(data, ['bound_by']).hidden]).toEqual(['eager', 'bound_by']);
    expect([...initialView({ columns: [column('eager')], nRows: 1 }, []).hidden]).toEqual([]);
  });

  it('counts idle time unless told otherwise', () => {
    expect(countsIdle(undefined, true)).toBe(true);
    expect(countsIdle('false', true)).toBe(false);
  });
});
