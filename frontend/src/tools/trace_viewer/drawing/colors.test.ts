import { describe, expect, it } from 'vitest';
import { rgbOf } from '../../../base/color';
import { dark, light } from '../../../base/theme_tokens';
import { contrastOf, hatched, makePalette, SHADES } from '../../../canvas/palette';
import { DIM_FILL, HATCH_FILL, mix, type Rgb } from '../../../canvas/renderer';
import { FAMILIES } from '../data/names';

/** OKLab of sRGB (Björn Ottosson's matrices): distances are as people see them; black to white is 1. */
function oklab(color: Rgb): [number, number, number] {
  const [r, g, b] = color.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  ) as [number, number, number];
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function distance(a: Rgb, b: Rgb): number {
  const [one, other] = [oklab(a), oklab(b)];
  return Math.hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]);
}

const INKS: readonly Rgb[] = [
  [0, 0, 0],
  [1, 1, 1],
];

describe.each([
  ['light', light],
  ['dark', dark],
] as const)('colors of boxes, %s', (_, tokens) => {
  const color = (token: string): Rgb => rgbOf(tokens.get(token) ?? '');
  const { fills, isLightInk, isLightInkOnMerged } = makePalette(
    FAMILIES.map(({ token }) => color(token)),
    color('--bg'),
  );
  const shadesOf = (name: string): Rgb[] =>
    fills.slice(FAMILIES.findIndex((family) => family.name === name) * SHADES).slice(0, SHADES);

  it.each(FAMILIES.map(({ name, token }) => [name, token]))(
    '%s has a color, and names on all its shades are legible',
    (name, token) => {
      expect(tokens.has(token)).toBe(true);
      const first = FAMILIES.findIndex((family) => family.name === name) * SHADES;
      shadesOf(name).forEach((fill, shade) => {
        expect(contrastOf(fill, INKS[isLightInk[first + shade] as number] as Rgb)).toBeGreaterThanOrEqual(
          4.5,
        );
      });
    },
  );

  it('distinguishes Python calls, tf.data and operations, whatever their shades', () => {
    for (const [a, b] of [
      ['python', 'input'],
      ['python', 'op'],
      ['input', 'op'],
    ] as const) {
      for (const one of shadesOf(a))
        for (const other of shadesOf(b)) expect(distance(one, other)).toBeGreaterThan(0.08);
    }
  });

  it('shows every box on the ground, merged and dimmed ones too', () => {
    for (const fill of fills) {
      expect(distance(fill, color('--bg'))).toBeGreaterThan(0.06);
      expect(distance(mix(fill, color('--bg'), HATCH_FILL), color('--bg'))).toBeGreaterThan(0.05);
      expect(distance(mix(fill, color('--bg'), DIM_FILL), color('--bg'))).toBeGreaterThan(0.01);
    }
  });

  it('writes the number of events on merged boxes readably', () => {
    fills.forEach((fill, style) => {
      const ink = INKS[isLightInkOnMerged[style] as number] as Rgb;
      expect(contrastOf(hatched(fill, color('--bg')), ink)).toBeGreaterThanOrEqual(4.5);
      // Letters cross lines and gaps alike.
      expect(contrastOf(mix(fill, color('--bg'), HATCH_FILL), ink)).toBeGreaterThanOrEqual(3);
    });
  });
});
