import { describe, expect, it } from 'vitest';
import { parseFilter, parseQuantity } from './filter';
import {
  cellText,
  choicesOf,
  constantOf,
  parseView,
  PLAIN_VIEW,
  preparations,
  rowFinder,
  toCsv,
  totalOf,
  totalText,
  viewChange,
  type Cell,
  type TableColumn,
  type TableData,
} from './model';

function column(name: string, kind: TableColumn['kind'], unit: string, cells: Cell[]): TableColumn {
  return { name, title: name, kind, unit, cell: (row) => cells[row] ?? null };
}

const name = column('name', 'text', '', ['fusion.10', 'fusion.2', 'MatMul', null, 'a,"b"']);
const time = column('time', 'number', 'ps', [5e9, null, 1e9, 9e9, 2e9]);
const eager = column('eager', 'bool', '', [true, false, null, true, false]);
const data: TableData = { columns: [name, time, eager], nRows: 5 };
const rows = (view: Partial<typeof PLAIN_VIEW>): number[] => [...rowFinder(data)({ ...PLAIN_VIEW, ...view })];

describe('rows of a view', () => {
  it('keeps the order of the data without a sort', () => expect(rows({})).toEqual([0, 1, 2, 3, 4]));

  it('sorts numbers, unknown last in both directions', () => {
    expect(rows({ sort: { column: 'time', descending: true } })).toEqual([3, 0, 4, 2, 1]);
    expect(rows({ sort: { column: 'time', descending: false } })).toEqual([2, 4, 0, 3, 1]);
  });

  it('sorts names as people count', () =>
    expect(rows({ sort: { column: 'name', descending: false } })).toEqual([4, 1, 0, 2, 3]));

  it('ignores a sort by a column that is not there', () =>
    expect(rows({ sort: { column: 'gone', descending: true } })).toHaveLength(5));

  it('searches texts, all words, any case', () => {
    expect(rows({ query: 'FUSION 10' })).toEqual([0]);
    expect(rows({ query: 'matmul' })).toEqual([2]);
    expect(rows({ query: 'nothing' })).toEqual([]);
  });

  it('filters columns together', () => {
    expect(rows({ filters: { time: '>= 2 ms' } })).toEqual([0, 3, 4]);
    expect(rows({ filters: { time: '>= 2 ms', name: 'fusion' } })).toEqual([0]);
    expect(rows({ filters: { eager: 'no' } })).toEqual([1, 4]);
    expect(rows({ filters: { time: 'what?' } })).toHaveLength(5);
  });

  it('follows one view after another', () => {
    const find = rowFinder(data);
    expect([...find({ ...PLAIN_VIEW, query: 'fusion' })]).toEqual([0, 1]);
    expect([...find({ ...PLAIN_VIEW, query: 'mat' })]).toEqual([2]);
    expect(find(PLAIN_VIEW)).toHaveLength(5);
  });

  it('of many rows prepares what searching and sorting need, without changing what they find', () => {
    const many = Array.from({ length: 1000 }, (_, i) => `op.${(i * 7) % 1000}`);
    const dataOf = (): TableData => ({ columns: [column('s', 'text', '', many)], nRows: many.length });
    const [ready, fresh] = [dataOf(), dataOf()];
    expect(preparations(data)).toEqual([]);
    const steps = preparations(ready);
    expect(steps).toHaveLength(2);
    for (const step of steps) step();
    const view = { ...PLAIN_VIEW, query: 'op.9', sort: { column: 's', descending: false } };
    expect([...rowFinder(ready)(view)]).toEqual([...rowFinder(fresh)(view)]);
    expect(many[rowFinder(ready)(view)[1] as number]).toBe('op.90');
  });

  it('does 100,000 rows in a moment', () => {
    const many = Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 100_003);
    const big: TableData = {
      columns: [
        column('n', 'number', 'count', many),
        column(
          's',
          'text',
          '',
          many.map((n) => `op.${n % 500}`),
        ),
      ],
      nRows: many.length,
    };
    const start = performance.now();
    const found = rowFinder(big)({ ...PLAIN_VIEW, query: 'op.4', sort: { column: 'n', descending: true } });
    expect(found.length).toBeGreaterThan(10_000);
    expect(performance.now() - start).toBeLessThan(1000);
  });
});

describe('filters', () => {
  it.each([
    ['1 ms', 'ps', 1e9],
    ['1.5us', 'ps', 1.5e6],
    ['10%', 'fraction', 0.1],
    ['10', 'fraction', 0.1],
    ['2 MiB', 'bytes', 2 * 1024 ** 2],
    ['3 GFLOP/s', 'flops_per_s', 3e9],
    ['1,000', 'count', 1000],
    ['1 ms', 'bytes', null],
    ['fast', 'ps', null],
  ])('%s of %s', (text, unit, expected) => expect(parseQuantity(text, unit)).toBe(expected));

  it('knows ranges, bounds and exact names', () => {
    const within = parseFilter('1 ms .. 5 ms', 'number', 'ps');
    expect([0.5e9, 1e9, 5e9, 6e9, null].map((cell) => within?.(cell))).toEqual([
      false,
      true,
      true,
      false,
      false,
    ]);
    expect(parseFilter('<10', 'number', 'count')?.(9)).toBe(true);
    expect(parseFilter('=Mat', 'text', '')?.('MatMul')).toBe(false);
    expect(parseFilter('perhaps', 'bool', '')).toBeNull();
  });
});

describe('a view in the URL', () => {
  const initial = { ...PLAIN_VIEW, sort: { column: 'time', descending: true } };
  it('comes back as it was', () => {
    const view = {
      sort: { column: 'name', descending: false },
      query: 'x y',
      filters: { time: '> 1 ms' },
      hidden: new Set(['eager']),
    };
    const change = viewChange(initial, view, initial);
    expect(change).toEqual({ sort: 'name', q: 'x y', hide: 'eager', 'f.time': '> 1 ms' });
    expect(parseView(change as Record<string, string>, initial)).toEqual({ ...view, isChosen: true });
  });
  it('says which columns the user chose, even if they are the initial ones', () => {
    const chosen = { ...initial, isChosen: true };
    expect(viewChange(initial, chosen, initial).hide).toBe('none');
    expect(parseView({ hide: 'none' }, initial).isChosen).toBe(true);
    expect(parseView({ sort: 'none' }, initial).isChosen).toBeUndefined();
  });
  it('takes no place where it is the initial one, and says "none" where that differs', () => {
    expect(viewChange(initial, initial, initial)).toEqual({ sort: undefined, q: undefined, hide: undefined });
    expect(parseView({ sort: 'none' }, initial).sort).toBeNull();
    expect(viewChange({ ...initial, filters: { a: '1' } }, initial, initial)).toHaveProperty(
      'f.a',
      undefined,
    );
  });
});

describe('cells', () => {
  it('become text, totals, choices and CSV', () => {
    expect(cellText(time, null)).toBe('—');
    expect(cellText(eager, true)).toBe('Yes');
    expect(totalOf(time, [0, 1, 2])).toBe(6e9);
    expect(totalOf(time, [1])).toBeNull();
    expect(choicesOf(name, 5, 3)).toBeNull();
    expect(choicesOf(name, 5)).toHaveLength(4);
    expect(toCsv([name, time], [4, 1])).toBe('name,time\r\n"a,""b""",2000000000\r\nfusion.2,\r\n');
  });
});

describe('a total', () => {
  it('reads as the same number elsewhere, but for minutes', () => {
    expect(totalText(column('t', 'number', 'ps', [494e6, 4849e6]), [0, 1])).toBe('5.34\u00a0ms');
    expect(totalText(column('t', 'number', 'ps', [29e12, 30e12]), [0, 1])).toBe('59.0\u00a0s');
    expect(totalText(column('t', 'number', 'ps', [77.8e12, 77.6e12, 75.7e12, 84e12]), [0, 1, 2, 3])).toBe(
      '315\u00a0s',
    );
    expect(totalText(column('t', 'number', 'ps', [469e6, 9e9, null]), [0, 2])).toBe('469\u00a0µs');
    expect(totalText(column('t', 'number', 'ps', [null]), [0])).toBe('');
  });
});

describe('a column of one and the same', () => {
  it('is known by its text, or null where nothing is known', () => {
    expect(constantOf(column('p', 'text', '', ['jit_f', 'jit_f']), 2)).toBe('jit_f');
    expect(constantOf(column('p', 'text', '', [null, null]), 2)).toBe(null);
    expect(constantOf(column('p', 'text', '', ['jit_f', 'jit_g']), 2)).toBe(undefined);
    expect(constantOf(column('p', 'text', '', ['jit_f']), 1)).toBe(undefined);
  });
});
