import { describe, expect, it } from 'vitest';
import { readTable } from '../../api/declared';
import { payloadOf, tableFor } from '../testing';
import { MOST_BARS, searchOf, stallSeries, TABLES } from './model';

function rowsOf(n: number) {
  const at = (value: number): number[] => Array.from({ length: n }, (_, row) => value * (row + 1));
  const rendezvous = tableFor(TABLES.rendezvous, {
    rendezvous: Array.from({ length: n }, (_, row) => `r${row}`),
    send_ps: at(1),
    send_done_ps: at(10),
    recv_ps: at(100),
    recv_done_ps: at(1000),
    recv_op: ['recv-done.1', ...Array.from({ length: n - 1 }, () => '')],
  });
  return readTable(payloadOf({ tables: { rendezvous } }), TABLES.rendezvous);
}

describe('the stall of rendezvous', () => {
  it('is stacked by operation, means times how often they occur', () => {
    const series = stallSeries(rowsOf(3), (row) => row + 1);
    expect(series.map(({ name }) => name)).toEqual(['send_ps', 'send_done_ps', 'recv_ps', 'recv_done_ps']);
    expect(series.map(({ values }) => values)).toEqual([
      [1, 4, 9],
      [10, 40, 90],
      [100, 400, 900],
      [1000, 4000, 9000],
    ]);
    expect(new Set(series.map(({ token }) => token)).size).toBe(4);
  });

  it('has bars for the first rows only', () => {
    expect(stallSeries(rowsOf(MOST_BARS), () => 1)[0]?.values).toHaveLength(MOST_BARS);
    expect(stallSeries(rowsOf(MOST_BARS + 1), () => 1)[0]?.values).toHaveLength(MOST_BARS);
  });

  it('links to the operation that ends it, where it is known', () => {
    expect([searchOf(rowsOf(2), 0), searchOf(rowsOf(2), 1)]).toEqual([{ q: 'recv-done.1' }, null]);
  });
});
