import { describe, expect, it } from 'vitest';
import { positionOf, tokensOf } from './tokens';

/** The parts but spaces, each with its kind's first letter; ! marks the wrong one. */
function read(text: string, wrongAt: number | null = null): string {
  return tokensOf(text, wrongAt)
    .filter(({ kind }) => kind !== 'space')
    .map(({ text: part, kind, isWrong }) => `${kind.charAt(0)}${isWrong ? '!' : ''}${part.trim()}`)
    .join(' ');
}

describe('the colors of a query', () => {
  it('are those of fields, operators and values', () => {
    expect(read('dur>1ms name~^dot -name:copy load batch')).toBe(
      'fdur o> t1ms fname o~ t^dot o- fname o: tcopy tload tbatch',
    );
    expect(read('dur > 1 ms')).toBe('fdur o> t1 tms');
    expect(read('arg."Input Dims"=[1, 2] arg.x:"a b"')).toBe('farg."Input Dims" o= t[1, 2] farg.x o: t"a b"');
    expect(read('Eigen::Tensor name::x a=b')).toBe('tEigen::Tensor tname::x ta=b');
  });
  it('show OR, AND and the brackets around alternatives', () => {
    expect(read('a OR (track:x | name~^(p|q)$) AND -b')).toBe(
      'ta jOR j( ftrack o: tx j| fname o~ t^(p|q)$ j) jAND o- tb',
    );
    expect(read('wait (for completion)')).toBe('twait t( tfor tcompletion t)');
    expect(read('ORDER "OR" a|b')).toBe('tORDER t"OR" ta|b');
  });
  it('never lose a character, whatever was typed', () => {
    for (const text of ['', '  ', 'dur>', '"', "name:'a", '((', ')', '-', '- a', 'arg.', 'é{ [', 'a OR'])
      expect(
        tokensOf(text, 0)
          .map((token) => token.text)
          .join(''),
      ).toBe(text);
  });
  it('mark the part that the server cannot read', () => {
    const message = "The query cannot be read at character 5, 'abc x': 'abc' is not a number.";
    expect(positionOf(message)).toBe(4);
    expect(positionOf('The query cannot be read at its end: name: lacks a value.')).toBeNull();
    expect(read('dur>abc x', 4)).toBe('fdur o> t!abc tx');
  });
});
