// @vitest-environment happy-dom
import { describe, expect, it } from 'vitest';
import type { Cell, TableColumn } from './model';
import {
  barColumns,
  columnsWithRoom,
  fitWidths,
  naturalWidths,
  textFitter,
  type ColumnWidth,
  type Fonts,
} from './widths';

// Without a canvas every character is 8 px wide; 18 px of padding.
const FONTS: Fonts = { title: '', cell: '', mono: '', total: '' };
const column = (
  name: string,
  kind: TableColumn['kind'],
  unit: string,
  cells: readonly Cell[],
): TableColumn => ({ name, title: name, kind, unit, cell: (row) => cells[row] ?? null });
const widthsOf = (one: TableColumn, nRows: number, totals: string[] = []): ColumnWidth =>
  naturalWidths({ columns: [one], nRows }, [], totals, FONTS).get(one.name) as ColumnWidth;
const columns = [
  column('name', 'text', '', ['x'.repeat(40)]),
  column('a longer title', 'number', 'count', [1]),
  column('time', 'number', 'ps', [1e9]),
];
const natural = new Map<string, ColumnWidth>([
  ['name', { wide: 300, narrow: 120 }],
  ['a longer title', { wide: 150, narrow: 80 }],
  ['time', { wide: 60, narrow: 60 }],
]);

describe('the natural width of a column', () => {
  it('has room for its widest number, wherever it stands', () => {
    const cells = Array.from({ length: 5000 }, (_, row) => (row === 4321 ? 4.4239e9 : 1e12));
    // "4.42 GFLOP/s" is longer than "1 TFLOP/s" and than the title.
    expect(widthsOf(column('rate', 'number', 'flops_per_s', cells), 5000).narrow).toBe(12 * 8 + 18);
  });
  it('has room for the total', () => {
    const cells = Array.from({ length: 20 }, () => 99e12);
    // "99.0 s" and, in the unit of its largest cell, "1,980 s"; "9,900" and "198,000".
    expect(widthsOf(column('t', 'number', 'ps', cells), 20).narrow).toBe(6 * 8 + 18);
    expect(widthsOf(column('t', 'number', 'ps', cells), 20, ['t']).narrow).toBe(7 * 8 + 18);
    const counts = Array.from({ length: 20 }, () => 9900);
    expect(widthsOf(column('n', 'number', 'count', counts), 20).narrow).toBe(5 * 8 + 18);
    expect(widthsOf(column('n', 'number', 'count', counts), 20, ['n']).narrow).toBe(7 * 8 + 18);
  });
  it('is less with the title on two lines', () => {
    const one = { ...column('n', 'number', 'count', [1]), title: 'Average self time' };
    expect(widthsOf(one, 1)).toEqual({ wide: 19 * 8 + 18, narrow: 11 * 8 + 18 });
  });
  it('has room for a bar only if one of its fractions can be seen', () => {
    const large = column('a', 'number', 'fraction', [0.5, 0.001]);
    const small = column('b', 'number', 'fraction', [0.008, 0.001]);
    expect(barColumns({ columns: [large, small], nRows: 2 })).toEqual(new Set(['a']));
    expect(widthsOf(large, 2).wide - widthsOf(small, 2).wide).toBe(72);
  });
});

describe('the least width of texts', () => {
  const long = (start: string): Cell[] => [`${start}${'x'.repeat(60)}`, 'y'.repeat(61), 'z'];
  const least = (...texts: TableColumn[]): number[] =>
    texts.map(
      ({ name }) =>
        (naturalWidths({ columns: texts, nRows: 3 }, [], [], FONTS).get(name) as ColumnWidth).narrow,
    );
  it('is larger for the first one, which says what a row is', () => {
    expect(least(column('name', 'text', '', long('a')), column('type', 'text', '', long('b')))).toEqual([
      230 + 18,
      120 + 18,
    ]);
  });
  it('is larger for the first one of which not all cells are the same', () => {
    const same = column(
      'host',
      'text',
      '',
      Array.from({ length: 3 }, () => 'h'.repeat(61)),
    );
    const last = column('name', 'text', '', ['h'.repeat(61), 'h'.repeat(61), 'z']);
    expect(least(same, last, column('type', 'text', '', long('b')))).toEqual([120 + 18, 230 + 18, 120 + 18]);
  });
});

describe('columns with room', () => {
  const names = (roomPx: number, kept: string[] = []): string[] =>
    columnsWithRoom(columns, natural, roomPx, new Set(kept)).map(({ name }) => name);
  it('are all columns if they fit when they are narrow, or while the room is unknown', () => {
    expect(names(260)).toEqual(['name', 'a longer title', 'time']);
    expect(names(0)).toEqual(['name', 'a longer title', 'time']);
  });
  it('lose the last ones first, as many as there is no room for', () => {
    expect(names(259)).toEqual(['name', 'a longer title']);
    expect(names(199)).toEqual(['name']);
  });
  it('keep the first column and those that the table is sorted or filtered by', () => {
    expect(names(259, ['time'])).toEqual(['name', 'time']);
    expect(names(10, ['a longer title'])).toEqual(['name', 'a longer title']);
    expect(names(10)).toEqual(['name']);
  });
});

describe('fitted columns', () => {
  it('give spare room to texts', () =>
    expect(fitWidths(columns, natural, 610, false)).toEqual([400, 150, 60]));
  it('shorten texts before titles take two lines, as long as they are easy to read', () =>
    expect(fitWidths(columns, natural, 480, false)).toEqual([270, 150, 60]));
  it('put titles on two lines before texts become short', () =>
    expect(fitWidths(columns, natural, 400, false)).toEqual([260, 80, 60]));
  it('never cut numbers: a table scrolls sideways instead', () =>
    expect(fitWidths(columns, natural, 200, false)).toEqual([120, 80, 60]));
  it('shorten texts further where the table may not scroll', () =>
    expect(fitWidths(columns, natural, 200, true)).toEqual([80, 80, 60]));
  it('share the room of several texts so that short ones stay whole', () => {
    const texts = [column('a', 'text', '', []), column('b', 'text', '', []), column('c', 'text', '', [])];
    const widths = new Map([
      ['a', { wide: 90, narrow: 90 }],
      ['b', { wide: 500, narrow: 120 }],
      ['c', { wide: 200, narrow: 120 }],
    ]);
    expect(fitWidths(texts, widths, 590, false)).toEqual([90, 300, 200]);
    expect(fitWidths(texts, widths, 450, false)).toEqual([90, 180, 180]);
  });
});

describe('a text in a column', () => {
  it('is shortened to the characters that fit', () => {
    const fit = textFitter(FONTS);
    const cut = (text: string, nChars: number): string => `${text.slice(0, nChars - 1)}…`;
    expect(fit('abcdefghij', 10 * 8 + 18, false, cut)).toBe('abcdefghij');
    expect(fit('abcdefghij', 6 * 8 + 18, false, cut)).toBe('abcde…');
  });
});
