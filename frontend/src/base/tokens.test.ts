import { describe, expect, it } from 'vitest';
import { contrast, rgbOf } from './color';
import { dark, light, tokensOf } from './theme_tokens';

const GROUNDS = ['--bg', '--surface', '--raised', '--hover'];
/** Between two colors, in steps of 255 per channel; less is hard to tell apart in a bar. */
const LEAST_DISTANCE = 30;

function distance(a: string, b: string): number {
  const [one, other] = [rgbOf(a), rgbOf(b)];
  return 255 * Math.hypot(...one.map((channel, i) => channel - (other[i] ?? 0)));
}

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

  it('has a color of its own for each kind of time', () => {
    const kinds = [...tokens].filter(([name]) => name.startsWith('--c-'));
    const near = kinds.flatMap(([a, one], i) =>
      kinds
        .slice(i + 1)
        .filter(([, other]) => distance(one, other) < LEAST_DISTANCE)
        .map(([b]) => [a, b]),
    );
    expect(near).toEqual([]);
  });

  it('has the same tokens in both themes', () => {
    expect([...tokensOf(':root').keys()].sort()).toEqual([...tokensOf(':root.dark').keys()].sort());
  });
});
