import { describe, expect, it } from 'vitest';
import { rgbOf } from '../base/color';
import { contrastOf, makePalette, SHADES } from './palette';

const LIGHT = [
  '#3576cb',
  '#e2711d',
  '#b79a00',
  '#8656c7',
  '#5b4b9e',
  '#2f9486',
  '#c2497a',
  '#6f8294',
  '#cfd4db',
].map(rgbOf);
const DARK = [
  '#5b95e6',
  '#f08c42',
  '#d6bb3a',
  '#a884e0',
  '#8b7ad0',
  '#4fb8a8',
  '#de6f9c',
  '#8fa1b3',
  '#454c55',
].map(rgbOf);

describe('palette', () => {
  it.each([
    ['light', LIGHT, [1, 1, 1]],
    ['dark', DARK, [0.08, 0.09, 0.1]],
  ] as const)('writes readably on every fill (%s)', (_, families, background) => {
    const { fills, isLightInk } = makePalette(families, background);
    expect(fills.length).toBe(families.length * SHADES);
    fills.forEach((fill, style) => {
      const ink = isLightInk[style] ? ([1, 1, 1] as const) : ([0, 0, 0] as const);
      expect(contrastOf(fill, ink)).toBeGreaterThanOrEqual(4.5);
    });
  });
});
