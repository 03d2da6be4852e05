// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from 'vitest';
import { compareParams, lettered, signed } from '../marks/compare';
import {
  keepMarks,
  keptMarks,
  Marks,
  marksText,
  MOST_MARKS,
  pairText,
  parseMarks,
  parsePair,
  type Mark,
} from './marks';

const mark = (startPs: number, endPs: number, words: Partial<Mark> = {}): Mark => ({
  startPs,
  endPs,
  trackIds: null,
  depths: null,
  name: '',
  note: '',
  ...words,
});
const THREE = [
  mark(10, 90, { name: 'steady, step; 1', note: 'a "note" & ünïcode' }),
  mark(40, 40, { name: 'instant' }),
  mark(5, 7, { trackIds: [3, 9] }),
];

describe('marks in a link', () => {
  it('come back as they went, whatever their names contain', () => {
    expect(parseMarks(marksText(THREE))).toEqual(THREE);
    expect(marksText(THREE).split(';')).toHaveLength(3);
    expect(marksText(THREE.slice(1))).toBe('40,instant;5-7@3.9');
  });
  it('are at most as many as letters, and what is no mark is left out', () => {
    expect(parseMarks('x;9-3;1-2,%E0%A4%A;99999999999999999;7')).toEqual([mark(1, 2), mark(7, 7)]);
    expect(parseMarks(Array.from({ length: 60 }, (_, i) => `${String(i)}-100`).join(';'))).toHaveLength(
      MOST_MARKS,
    );
    expect(parseMarks(`1-2,${'n'.repeat(500)},${'t'.repeat(999)}`)[0]).toMatchObject({
      name: 'n'.repeat(60),
      note: 't'.repeat(300),
    });
  });
  it('leave out notes, then the last marks, where the link would grow too long', () => {
    const many = Array.from({ length: 26 }, (_, i) => mark(i, 100, { name: 'n'.repeat(40), note: 'long' }));
    const short = parseMarks(marksText(many, 1300));
    expect(short.map(({ note }) => note)).toEqual(Array.from({ length: 26 }, () => ''));
    expect(parseMarks(marksText(many, 500)).map(({ startPs }) => startPs)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
    ]);
    expect(marksText(many, 500).length).toBeLessThanOrEqual(500);
  });
  it('name two that are compared only if both exist', () => {
    const pair = { a: 0, b: 2, by: 'track', isBeside: true } as const;
    expect(parsePair(pairText(pair), 3)).toEqual(pair);
    expect(parsePair('AB', 3)).toEqual({ a: 0, b: 1, by: 'name', isBeside: false });
    for (const text of ['AA', 'AD', 'ab', 'A', 'AB.x', undefined]) expect(parsePair(text, 3)).toBeNull();
  });
});

describe('marks in the browser', () => {
  beforeEach(() => {
    window.localStorage.clear();
  });
  it('are kept per run, of the last thirty runs', () => {
    keepMarks('r', THREE);
    keepMarks('other', [mark(1, 2)]);
    expect([keptMarks('r'), keptMarks('other'), keptMarks('new')]).toEqual([THREE, [mark(1, 2)], []]);
    for (let i = 0; i < 29; i++) keepMarks(`run ${String(i)}`, [mark(1, 2)]);
    expect(keptMarks('r')).toEqual([]);
    expect(keptMarks('other')).toEqual([mark(1, 2)]);
    keepMarks('other', []);
    expect(keptMarks('other')).toEqual([]);
  });
  it('are none where the storage holds something else', () => {
    for (const text of ['7', '{"r":5}', 'null', '{bad']) {
      window.localStorage.setItem('tpuprof.trace_viewer.marks', text);
      expect(keptMarks('r')).toEqual([]);
    }
  });
});

describe('the list of marks', () => {
  it('keeps a window once, and moves letters up when one is deleted', () => {
    const marks = new Marks();
    expect(THREE.map((each) => marks.add(each))).toEqual([0, 1, 2]);
    expect(marks.add(mark(10, 90))).toBe(0);
    expect(marks.intervals).toEqual([0, 2]);
    expect(marks.compare()).toBe(true);
    expect(marks.pair.value).toEqual({ a: 0, b: 2, by: 'name', isBeside: false });
    marks.remove(1);
    expect(marks.pair.value).toMatchObject({ a: 0, b: 1 });
    marks.change(1, { name: 'slow' });
    expect(marks.list.value[1]).toMatchObject({ name: 'slow', startPs: 5 });
    marks.shift(3);
    expect(marks.list.value.map(({ startPs }) => startPs)).toEqual([13, 8]);
    marks.remove(0);
    expect(marks.pair.value).toBeNull();
    expect(marks.compare()).toBe(false);
  });
  it('is full after Z', () => {
    const marks = new Marks();
    for (let i = 0; i < MOST_MARKS; i++) marks.add(mark(i, 100));
    expect(marks.add(mark(99, 100))).toBe(-1);
  });
});

describe('a comparison', () => {
  const [a, b] = [mark(1.5, 9), mark(20, 30.2)];
  it('asks for both windows on the tracks shown, or the tracks of two boxes', () => {
    expect(compareParams(a, b, 'name', null)).toEqual({
      a_start_ps: '1',
      a_end_ps: '9',
      b_start_ps: '20',
      b_end_ps: '31',
      by: 'name',
    });
    expect(compareParams(a, { ...b, trackIds: [3] }, 'track', [4, 7]).tracks).toBe('4,7');
    expect(compareParams({ ...a, trackIds: [3] }, { ...b, trackIds: [3] }, 'track', [4, 7]).tracks).toBe('3');
  });
  it('titles its columns with the letters of the two', () => {
    const titles = ['Name', 'A', 'B', 'B − A', 'Total A', 'Total B − A', 'Events B'];
    const columns = titles.map((title) => ({
      name: title,
      title,
      unit: '',
      kind: 'text' as const,
      cell: () => null,
    }));
    expect(lettered({ columns, nRows: 0 }, { a: 3, b: 2 }).columns.map(({ title }) => title)).toEqual([
      'Name',
      'D',
      'C',
      'C − D',
      'Total D',
      'Total C − D',
      'Events C',
    ]);
  });
  it('signs the differences', () => {
    expect([signed(1_300_000_000), signed(-30_000_000)].map((text) => text.replace(/\s/g, ' '))).toEqual([
      '+1.30 ms',
      '−30.0 µs',
    ]);
  });
});
