import { describe, expect, it } from 'vitest';
import { categoryToken, contrast, paletteToken, rgbOf } from './color';

describe('colors', () => {
  it('of categories are fixed, of unknown ones gray', () => {
    expect(categoryToken('input')).toBe('--c-input');
    expect(['python', 'wait'].map(categoryToken)).toEqual(['--c-python', '--c-wait']);
    expect(categoryToken('what')).toBe('--c-idle');
  });
  it('of names go round the palette', () =>
    expect([0, 9, 10].map(paletteToken)).toEqual(['--q-0', '--q-9', '--q-0']));
  it('are read from hexadecimal', () => {
    expect(rgbOf('#ff0000')).toEqual([1, 0, 0]);
    expect(rgbOf(' #fff')).toEqual([1, 1, 1]);
    expect(rgbOf('red')).toEqual([0.5, 0.5, 0.5]);
  });
  it('contrast as WCAG says', () => {
    expect(contrast('#000000', '#ffffff')).toBeCloseTo(21);
    expect(contrast('#777777', '#ffffff')).toBeCloseTo(4.48, 1);
  });
});
