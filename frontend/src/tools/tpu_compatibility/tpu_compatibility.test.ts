import { describe, expect, it } from 'vitest';
import { tableOf } from '../testing';
import { tableData } from '../tool';
import { keyOf, openAtFirst, openRows, scopeOfKey, scopesOf, toggled, validFraction, visible, within } from './model';

// (graph) { a { b (1 bad), c }, d }, (functions) { f { g (1 bad) } }
const TABLE = tableOf({
  name: ['(graph)', 'a', 'b', 'c', '(functions)', 'f', 'g', 'd'],
  path: ['', 'a', 'a/b', 'a/c', '(functions)', 'f', 'g', 'd'],
  function: ['', '', '', '', '', 'f', 'f', ''],
  parent: [-1, 0, 1, 1, 0, 4, 5, 0],
  n_valid: [9, 5, 2, 3, 3, 3, 1, 1],
  n_invalid: [2, 1, 1, 0, 1, 1, 1, 0],
  n_not_checked: [0, 0, 0, 0, 0, 0, 0, 0],
});
const SCOPES = scopesOf(TABLE);

describe('the tree of scopes', () => {
  it('has depths and children', () => {
    expect(SCOPES.map((scope) => scope.depth)).toEqual([0, 1, 2, 2, 1, 2, 3, 1]);
    expect(SCOPES[0]?.children).toEqual([1, 4, 7]);
    expect(validFraction(SCOPES[2] as (typeof SCOPES)[0])).toBeCloseTo(2 / 3);
  });

  it('opens the way to what is incompatible', () => {
    expect([...openAtFirst(SCOPES)]).toEqual([0, 1, 4, 5]);
    expect(visible(SCOPES, openAtFirst(SCOPES), true).map((scope) => scope.name)).toEqual(['(graph)', 'a', 'b', '(functions)', 'f', 'g']);
  });

  it('does not open more than a screen by itself', () => {
    const many = scopesOf(
      tableOf({
        name: ['(graph)', 'a', ...Array.from({ length: 40 }, (_, i) => `s${i}`)],
        path: ['', 'a', ...Array.from({ length: 40 }, (_, i) => `a/s${i}`)],
        function: Array.from({ length: 42 }, () => ''),
        parent: [-1, 0, ...Array.from({ length: 40 }, () => 1)],
        n_valid: Array.from({ length: 42 }, () => 1),
        n_invalid: Array.from({ length: 42 }, () => 1),
        n_not_checked: Array.from({ length: 42 }, () => 0),
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

  it('finds a scope by its link, and what is in it', () => {
    expect(SCOPES.map(keyOf)).toEqual(['', 'a', 'a/b', 'a/c', '(functions)', 'f:', 'f:g', 'd']);
    expect(scopeOfKey(SCOPES, 'f:g')?.row).toBe(6);
    expect(scopeOfKey(SCOPES, 'gone')).toBeUndefined();
    const ops = tableOf({ op: ['X', 'Y', 'Z', 'W'], scope: ['a/b', 'ab', 'g', ''], function: ['', '', 'f', 'f'] });
    const found = (key: string): unknown[] => {
      const data = within(ops, tableData(ops), scopeOfKey(SCOPES, key));
      return Array.from({ length: data.nRows }, (_, row) => data.columns[0]?.cell(row));
    };
    expect(found('a')).toEqual(['X']);
    expect(found('f:')).toEqual(['Z', 'W']);
    expect(found('f:g')).toEqual(['Z']);
    expect(found('(functions)')).toEqual(['Z', 'W']);
    expect(found('')).toEqual(['X', 'Y', 'Z', 'W']);
  });
});
