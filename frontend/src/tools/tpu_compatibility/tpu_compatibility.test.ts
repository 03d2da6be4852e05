import { describe, expect, it } from 'vitest';
import { readTable } from '../../api/declared';
import { payloadOf, tableFor } from '../testing';
import { tableData } from '../tool';
import {
  drawnOf,
  isWithin,
  levelOf,
  levelsOf,
  nextItem,
  noteOf,
  shortName,
  TABLES as DRAWN_TABLES,
} from './drawn';
import {
  boxesWith,
  keyOf,
  openAtFirst,
  openRows,
  scopeOfKey,
  scopesOf,
  TABLES,
  toggled,
  validFraction,
  visible,
  wayTo,
  within,
} from './model';
import type { Box } from './placed';

/** A column of booleans, as the server sends them. */
const bools = (values: number[]): boolean[] => values.map(Boolean);

// (graph) { a { b (1 bad), c }, d }, (functions) { f { g (1 bad) } }
const TABLE = tableFor(TABLES.scopes, {
  name: ['(graph)', 'a', 'b', 'c', '(functions)', 'f', 'g', 'd'],
  path: ['', 'a', 'a/b', 'a/c', '(functions)', 'f', 'g', 'd'],
  function: ['', '', '', '', '', 'f', 'f', ''],
  parent: [-1, 0, 1, 1, 0, 4, 5, 0],
  n_valid: [9, 5, 2, 3, 3, 3, 1, 1],
  n_invalid: [2, 1, 1, 0, 1, 1, 1, 0],
  n_not_checked: [0, 0, 0, 0, 0, 0, 0, 0],
});
const SCOPES = scopesOf(payloadOf({ tables: { scopes: TABLE } }));

describe('the tree of scopes', () => {
  it('has depths and children', () => {
    expect(SCOPES.map((scope) => scope.depth)).toEqual([0, 1, 2, 2, 1, 2, 3, 1]);
    expect(SCOPES[0]?.children).toEqual([1, 4, 7]);
    expect(validFraction(SCOPES[2] as (typeof SCOPES)[0])).toBeCloseTo(2 / 3);
  });

  it('opens the path to incompatible operations', () => {
    expect([...openAtFirst(SCOPES)]).toEqual([0, 1, 4, 5]);
    expect(visible(SCOPES, openAtFirst(SCOPES), true).map((scope) => scope.name)).toEqual([
      '(graph)',
      'a',
      'b',
      '(functions)',
      'f',
      'g',
    ]);
  });

  it('does not open more than a screen by itself', () => {
    const many = scopesOf(
      payloadOf({
        tables: {
          scopes: tableFor(TABLES.scopes, {
            name: ['(graph)', 'a', ...Array.from({ length: 40 }, (_, i) => `s${i}`)],
            path: ['', 'a', ...Array.from({ length: 40 }, (_, i) => `a/s${i}`)],
            function: Array.from({ length: 42 }, () => ''),
            parent: [-1, 0, ...Array.from({ length: 40 }, () => 1)],
            n_valid: Array.from({ length: 42 }, () => 1),
            n_invalid: Array.from({ length: 42 }, () => 1),
            n_not_checked: Array.from({ length: 42 }, () => 0),
          }),
        },
      }),
    );
    expect([...openAtFirst(many)]).toEqual([0]);
  });

  it('is in the link by what differs from that', () => {
    expect(toggled(undefined, 5)).toBe('5');
    expect(toggled('1.5', 5)).toBe('1');
    expect(toggled('5', 5)).toBeUndefined();
    expect([...openRows(SCOPES, '1.nonsense.2.99')]).toEqual([0, 4, 5]);
  });

  it('opens the way to a scope in the drawing', () => {
    expect(wayTo(SCOPES, SCOPES[6]!)).toEqual([4, 5, 6]);
    expect(wayTo(SCOPES, SCOPES[0]!)).toEqual([]);
    expect(boxesWith(undefined, [4, 5], true)).toBe('4o.5o');
    expect(boxesWith('5c.4.40.2', [4, 5], true)).toBe('40.2.4o.5o');
    expect(boxesWith('5o', [5], false)).toBe('5c');
    expect(boxesWith(undefined, [], true)).toBeUndefined();
  });

  it('finds a scope by its link, and its contents', () => {
    expect(SCOPES.map(keyOf)).toEqual(['', 'a', 'a/b', 'a/c', '(functions)', 'f:', 'f:g', 'd']);
    expect(scopeOfKey(SCOPES, 'f:g')?.row).toBe(6);
    expect(scopeOfKey(SCOPES, 'gone')).toBeUndefined();
    const incompatible = tableFor(TABLES.incompatible, {
      op: ['X', 'Y', 'Z', 'W'],
      scope: ['a/b', 'ab', 'g', ''],
      function: ['', '', 'f', 'f'],
    });
    const ops = readTable(payloadOf({ tables: { incompatible } }), TABLES.incompatible);
    const found = (key: string): unknown[] => {
      const data = within(ops, tableData(ops.table), scopeOfKey(SCOPES, key));
      return Array.from({ length: data.nRows }, (_, row) => data.columns[0]?.cell(row));
    };
    expect(found('a')).toEqual(['X']);
    expect(found('f:')).toEqual(['Z', 'W']);
    expect(found('f:g')).toEqual(['Z']);
    expect(found('(functions)')).toEqual(['Z', 'W']);
    expect(found('')).toEqual(['X', 'Y', 'Z', 'W']);
  });
});

describe('the drawing', () => {
  const items = tableFor(DRAWN_TABLES.items, {
    kind: ['scope', 'operation', 'scope', 'operation', 'rest'],
    name: ['a', 'x', 'b', 'a/b/op', '7 more'],
    op: ['', 'Relu', '', 'PyFunc', ''],
    frame: [-1, -1, 0, 2, 2],
    scope: [1, 0, 2, 2, 2],
    is_open: bools([1, 0, 1, 0, 0]),
    n_valid: [7, 0, 7, 0, 7],
    n_invalid: [1, 0, 1, 1, 0],
    n_not_checked: [0, 1, 0, 0, 0],
  });
  const edges = tableFor(DRAWN_TABLES.edges, { from: [1, 1], to: [3, 4], n: [2, 1], is_call: bools([0, 1]) });
  const drawn = drawnOf(payloadOf({ tables: { items, edges } }));

  it('has texts that match the colors', () => {
    expect(drawn.items.map(levelOf)).toEqual(['bad', 'none', 'bad', 'bad', 'good']);
    expect(drawn.items.map(noteOf)).toEqual([
      '✗ 1 of 8 operations',
      '· Relu',
      '✗ 1 of 8 operations',
      '✗ PyFunc',
      '✓ 7 operations',
    ]);
    expect(drawn.edges[1]).toEqual({ from: 1, to: 4, n: 1, isCall: true });
  });

  it('lists the contents of an open scope', () => {
    expect([0, 1, 2, 3].map((id) => isWithin(drawn.items, id, 0))).toEqual([false, false, true, true]);
    expect([...levelsOf(drawn.items)].sort()).toEqual([
      [0, 2],
      [2, 1],
    ]);
  });

  it('shortens names in the middle', () => {
    const [, , , op] = drawn.items;
    expect(op && shortName(op, 28)).toBe('op');
    expect(op && shortName({ ...op, name: 's/abcdefghijkl' }, 6)).toBe('ab…jkl');
  });

  it('leads arrow keys to the nearest box that way', () => {
    const at = new Map([
      [0, { x: 0, y: 0 }],
      [1, { x: 5, y: 50 }],
      [2, { x: 200, y: 40 }],
      [3, { x: 0, y: 100 }],
    ]);
    expect(nextItem(at, 0, 'ArrowDown')).toBe(1);
    expect(nextItem(at, 0, 'ArrowRight')).toBe(2);
    expect(nextItem(at, 0, 'ArrowUp')).toBeNull();
  });
});

describe('the layout', () => {
  it("puts an open scope's contents into its frame, and producers above consumers", async () => {
    const { layoutOf } = await import('./layout');
    const drawn = drawnOf(
      payloadOf({
        tables: {
          items: tableFor(DRAWN_TABLES.items, {
            kind: ['scope', 'operation', 'operation'],
            name: ['a', 'x', 'a/y'],
            op: ['', 'Relu', 'Relu'],
            frame: [-1, -1, 0],
            scope: [1, 0, 1],
            is_open: bools([1, 0, 0]),
            n_valid: [1, 1, 1],
            n_invalid: [0, 0, 0],
            n_not_checked: [0, 0, 0],
          }),
          edges: tableFor(DRAWN_TABLES.edges, { from: [1], to: [2], n: [1], is_call: bools([0]) }),
        },
      }),
    );
    const { at, links } = layoutOf(drawn);
    const [frame, x, y] = [0, 1, 2].map((id) => at.get(id) ?? { x: 0, y: 0, width: 0, height: 0 }) as [
      Box,
      Box,
      Box,
    ];
    expect(Math.abs(frame.x - y.x) + y.width / 2).toBeLessThanOrEqual(frame.width / 2);
    expect(Math.abs(frame.y - y.y) + y.height / 2).toBeLessThanOrEqual(frame.height / 2);
    expect(x.y + x.height / 2).toBeLessThan(y.y - y.height / 2);
    expect(links).toHaveLength(1);
  });
});
