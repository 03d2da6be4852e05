/** The design tokens as the stage's colours, read anew when the theme changes. */

import { categoryToken, rgbOf, tokenColor } from '../../base/color';
import type { StageTheme } from '../../canvas/stage';
import { FAMILIES } from './names';

export function readTheme(): StageTheme {
  const color = (token: string): [number, number, number] => rgbOf(tokenColor(token));
  return {
    families: FAMILIES.map((family) => color(categoryToken(family))),
    background: color('--bg'),
    surface: color('--surface'),
    line: color('--line'),
    text: color('--text'),
    muted: color('--muted'),
    accent: color('--accent'),
    font: `11px ${tokenColor('--font') || 'sans-serif'}`,
  };
}
