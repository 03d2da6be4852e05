import { describe, expect, it } from 'vitest';
import { completed, completionsAt } from './completion';
import type { QueryField } from '../data/query_model';

const FIELDS: QueryField[] = [
  { field: 'name', kind: 'text', meaning: '' },
  { field: 'dur', kind: 'time', meaning: '' },
  { field: 'track', kind: 'text', meaning: '' },
  { field: 'arg', kind: 'argument', meaning: 'any' },
  { field: 'arg.shape', kind: 'argument', meaning: '' },
  { field: 'arg."Input Dims"', kind: 'argument', meaning: '' },
];
const VALUES = new Map([['track', ['python', 'Stream #7(Compute)']]]);
const offered = (text: string, caret = text.length): string[] =>
  completionsAt(text, caret, FIELDS, VALUES).items.map((item) => item.text);

describe('completion in the query line', () => {
  it('offers fields that begin with the word, then those that contain it', () => {
    expect(offered('')).toEqual(['name:', 'dur>', 'track:', 'arg.']);
    expect(offered('du')).toEqual(['dur>']);
    expect(offered('a')).toEqual(['arg.', 'name:', 'track:']);
    expect(offered('name:dot -tr')).toEqual(['-track:']);
  });
  it('offers arguments after arg., quoted where they have spaces', () => {
    expect(offered('arg.')).toEqual(['arg.shape:', 'arg."Input Dims":']);
    expect(offered('arg.in')).toEqual(['arg."Input Dims":']);
  });
  it('offers the values of fields that have few', () => {
    expect(offered('track:')).toEqual(['track:python ', 'track:"Stream #7(Compute)" ']);
    expect(offered('-track=str')).toEqual(['-track="Stream #7(Compute)" ']);
    expect(offered('dur>1')).toEqual([]);
  });
  it('looks at the word at the caret; spaces in quotes do not end it', () => {
    expect(offered('du name:x', 2)).toEqual(['dur>']);
    expect(offered('track:"Stream #7')).toEqual(['track:"Stream #7(Compute)" ']);
  });
  it('goes on behind OR and within brackets', () => {
    expect(offered('name:x OR tr')).toEqual(['track:']);
    expect(offered('(du')).toEqual(['(dur>']);
    expect(offered('x -(track:py')).toEqual(['-(track:python ']);
  });
  it('inserts in place of the word, and puts the caret after it', () => {
    const text = 'name:a du x';
    const items = completionsAt(text, 9, FIELDS, VALUES);
    expect(completed(text, items, { text: 'dur>', meaning: '' })).toEqual({
      text: 'name:a dur>x',
      caret: 11,
    });
    const at = completionsAt('tra', 3, FIELDS, VALUES);
    expect(completed('tra', at, { text: 'track:', meaning: '' })).toEqual({ text: 'track:', caret: 6 });
  });
});
