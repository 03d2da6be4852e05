import { describe, expect, it } from 'vitest';
import type { Payload } from '../../api/types';
import type { TableColumn } from '../../widgets/table/model';
import { isOneSided, shownShares, type Donut } from '../donuts';
import { payloadOf, tableFor } from '../testing';
import { countsIdle, donutsOf, GROUPS, groupOf, initialView, TABLES } from './model';

type Name = Exclude<keyof typeof TABLES, 'ops'>;

/** An answer with the shares of some sides; those of the others are empty. */
function sharesOf(rows: Partial<Record<Name, [string, number][]>>): Payload {
  const names: Name[] = ['device_by_type', 'device_by_op', 'host_by_type', 'host_by_op'];
  const tables = names.map((name) => {
    const shares = rows[name] ?? [];
    const columns = {
      name: shares.map(([title]) => title),
      self_time_ps: shares.map(([, share]) => share * 1e9),
      fraction: shares.map(([, share]) => share),
    };
    return [name, tableFor(TABLES[name], columns)] as const;
  });
  return payloadOf({ tables: Object.fromEntries(tables) });
}

describe('donuts', () => {
  it('become bars where one slice is nearly all', () => {
    const of = (...fractions: number[]): Donut => ({
      name: 'by',
      title: '',
      note: '',
      timeName: '',
      slices: fractions.map((fraction, i) => ({
        name: `${i}`,
        title: '',
        label: '',
        token: '',
        timePs: 1,
        fraction,
      })),
    });
    expect([of(1), of(0.05, 0.95), of(0.5, 0.5)].map(isOneSided)).toEqual([true, true, false]);
  });
  it('exist for sides with time, device first, idle and other gray', () => {
    const donuts = donutsOf(
      sharesOf({
        host_by_type: [
          ['MatMul', 0.5],
          ['IDLE', 0.3],
          ['Other', 0.2],
          ['None', 0],
        ],
        device_by_op: [['fusion', 1]],
      }),
    );
    expect(donuts.map(({ name }) => name)).toEqual(['device_by_op', 'host_by_type']);
    expect(donuts[1]?.slices.map(({ title, token }) => [title, token])).toEqual([
      ['MatMul', '--q-0'],
      ['IDLE', '--c-idle'],
      ['Other', '--c-idle'],
    ]);
  });

  it('recompute shares when a slice is hidden', () => {
    const slices =
      donutsOf(
        sharesOf({
          host_by_op: [
            ['a', 0.6],
            ['b', 0.3],
            ['c', 0.1],
          ],
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
  it('initially hides rare and unknown columns, but never all', () => {
    const data = { columns: ['operation', 'eager', 'bound_by'].map(column), nRows: 1 };
    expect([...initialView(data, ['bound_by']).hidden]).toEqual(['eager', 'bound_by']);
    expect([...initialView({ columns: [column('eager')], nRows: 1 }, []).hidden]).toEqual([]);
    const hiddenOf = (...names: string[]): string[] => [
      ...initialView({ columns: names.map(column), nRows: 1 }, []).hidden,
    ];
    expect(hiddenOf('operation', 'type', 'call_stack')).toEqual(['type']);
    expect(hiddenOf('operation', 'type', 'input_shapes')).toEqual(['type']);
    expect(hiddenOf('operation', 'type')).toEqual([]);
  });

  it('counts idle time by default', () => {
    expect(countsIdle(undefined, true)).toBe(true);
    expect(countsIdle('false', true)).toBe(false);
  });
});

describe('the grouping', () => {
  it('is that of the link, else by operation', () => {
    expect(GROUPS.map(({ name }) => groupOf(name))).toEqual(['op', 'shape', 'stack']);
    expect([groupOf(undefined), groupOf('nonsense')]).toEqual(['op', 'op']);
  });
});
