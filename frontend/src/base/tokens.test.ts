import { describe, expect, it } from 'vitest';
import { contrast } from './color';
import { dark, light, tokensOf } from './theme_tokens';

const GROUNDS = ['--bg', '--surface', '--raised', '--hover'];
const PAIRS = [
  ...['--text', '--muted', '--accent'].flatMap((text) => GROUNDS.map((ground) => [text, ground])),
  ...['--good', '--warn', '--bad'].map((text) => [text, '--bg']),
  ['--accent', '--accent-soft'],
  ['--warn', '--warn-soft'],
  ['--bad', '--bad-soft'],
  ['--muted', '--warn-soft'],
  ['--muted', '--bad-soft'],
  ['--text', '--accent-soft'],
] as [string, string][];

describe.each([
  ['light', light],
  ['dark', dark],
] as const)('%s', (_, tokens) => {
  it.each(PAIRS)('%s on %s reads well (AA)', (text, ground) => {
    expect(contrast(tokens.get(text) ?? '', tokens.get(ground) ?? '')).toBeGreaterThanOrEqual(4.5);
  });

  it('has the same tokens in both themes', () => {
    expect([...tokensOf(':root').keys()].sort()).toEqual([...tokensOf(':root.dark').keys()].sort());
  });
});
