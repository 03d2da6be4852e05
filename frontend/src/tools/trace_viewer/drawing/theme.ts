/** The design tokens as the stage's colors, read again when the theme changes. */

import { rgbOf, tokenColor } from '../../../base/color';
import type { StageTheme } from '../../../canvas/overlay';
import { FAMILIES } from '../data/names';

export function readTheme(): StageTheme {
  const color = (token: string): [number, number, number] => rgbOf(tokenColor(token));
  return {
    families: FAMILIES.map(({ token }) => color(token)),
    background: color('--bg'),
    surface: color('--surface'),
    line: color('--line'),
    text: color('--text'),
    muted: color('--muted'),
    accent: color('--accent'),
    hit: color('--accent'),
    flow: color('--bad'),
    area: color('--c-host'),
    font: `11px ${tokenColor('--font') || 'sans-serif'}`,
  };
}
