/**
 * A few base colors (the theme's categories of time) become the fills of boxes: SHADES neighbors of each,
 * which differ in hue and lightness, and for each fill the ink, dark or light, that is easier to read on it.
 * Styles are numbered family × SHADES + shade, so a change of theme changes this table and nothing in the
 * buffers.
 */

import { luminance } from '../base/color';
import { HATCH_FILL, MERGED_FILL, mix, type Rgb } from './renderer';

export const SHADES = 8;

/**
 * Shifts of hue (degrees) and lightness (0–1) of the shades of a family: small enough to keep the family's
 * color.
 */
const OFFSETS: readonly (readonly [number, number])[] = [
  [0, 0],
  [-8, 0.05],
  [7, -0.05],
  [-5, -0.09],
  [6, 0.07],
  [3, 0.11],
  [-10, 0.01],
  [9, -0.01],
];

/** Black and white: on every fill one of them has a contrast of 4.58 or more, above WCAG's 4.5. */
const DARK_INK: Rgb = [0, 0, 0];
const LIGHT_INK: Rgb = [1, 1, 1];

/** A theme whose background is darker than this is a dark one. */
const DARK_BELOW = 0.2;

export interface Palette {
  readonly fills: readonly Rgb[];
  /** 1: light ink is easier to read on this fill. */
  readonly isLightInk: Uint8Array;
  /** The same on the hatching of merged boxes. */
  readonly isLightInkOnMerged: Uint8Array;
}

function toHsl([r, g, b]: Rgb): [number, number, number] {
  const max = Math.max(r, g, b);
  const min = Math.min(r, g, b);
  const lightness = (max + min) / 2;
  const delta = max - min;
  if (delta === 0) return [0, 0, lightness];
  const saturation = delta / (1 - Math.abs(2 * lightness - 1));
  const sector =
    max === r ? ((g - b) / delta + 6) % 6 : max === g ? (b - r) / delta + 2 : (r - g) / delta + 4;
  return [sector * 60, saturation, lightness];
}

function fromHsl(hue: number, saturation: number, lightness: number): Rgb {
  const part = (n: number): number => {
    const k = (n + hue / 30 + 12) % 12;
    return (
      lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1))
    );
  };
  return [part(0), part(8), part(4)];
}

/** Contrast ratio of WCAG 2, 1–21. */
export function contrastOf(a: Rgb, b: Rgb): number {
  const [one, other] = [luminance(a), luminance(b)];
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

/** On a dark background the shades are darker instead of lighter: pastels glare. */
export function makePalette(families: readonly Rgb[], background: Rgb): Palette {
  const isDark = luminance(background) < DARK_BELOW;
  const sign = isDark ? -1 : 1;
  const fills = families.flatMap((base) => {
    const [hue, saturation, lightness] = toHsl(base);
    return OFFSETS.map(([turn, lift]) =>
      fromHsl((hue + turn + 360) % 360, saturation, Math.min(0.9, Math.max(0.15, lightness + sign * lift))),
    );
  });
  const isLightOn = (fill: Rgb): number =>
    Number(contrastOf(fill, LIGHT_INK) >= Math.min(4.5, contrastOf(fill, DARK_INK)));
  return {
    fills,
    isLightInk: Uint8Array.from(fills, isLightOn),
    isLightInkOnMerged: Uint8Array.from(fills, (fill) => isLightOn(hatched(fill, background))),
  };
}

/** The average color of a merged box's hatching: half lines, half gaps. */
export function hatched(fill: Rgb, background: Rgb): Rgb {
  return mix(fill, background, (MERGED_FILL + HATCH_FILL) / 2);
}

export function inkCss(isLight: number): string {
  const ink = isLight ? LIGHT_INK : DARK_INK;
  return `rgb(${ink.map((part) => Math.round(part * 255)).join(' ')})`;
}
