/** Colors: a category of time has the same color in every tool; a name gets a stable color of the palette. */

/** Categories of time, as payloads name them, each with its token. */
const CATEGORIES: Record<string, string> = {
  compute: '--c-compute',
  input: '--c-input',
  output: '--c-output',
  collective: '--c-collective',
  d2d: '--c-d2d',
  host: '--c-host',
  python: '--c-python',
  wait: '--c-wait',
  compile: '--c-compile',
  launch: '--c-launch',
  idle: '--c-idle',
  other: '--c-idle',
  compute_low: '--q-6',
  collective_wait: '--q-9',
  comm_hidden: '--c-comm-hidden',
  comm_partly: '--c-comm-partly',
  recv: '--q-4',
  callback: '--q-6',
  periodic: '--q-9',
  contention: '--q-4',
  warm_up: '--q-7',
};

/** Number of colors in the palette for names: tokens --q-0 … --q-9. */
const PALETTE_SIZE = 10;

/** The token (a CSS variable's name) of a category of time; unknown ones are gray. */
export function categoryToken(category: string): string {
  return CATEGORIES[category] ?? '--c-idle';
}

export function isCategory(category: string): boolean {
  return category in CATEGORIES;
}

/** The token of the n-th name of a list. */
export function paletteToken(n: number): string {
  return `--q-${n % PALETTE_SIZE}`;
}

/** The value of a token in the active theme. */
export function tokenColor(token: string, root: Element = document.documentElement): string {
  return getComputedStyle(root).getPropertyValue(token).trim();
}

/** "#rrggbb" or "#rgb" as [red, green, blue] of 0–1; anything else is gray. */
export function rgbOf(hex: string): [number, number, number] {
  const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(hex.trim())?.[1];
  if (!digits) return [0.5, 0.5, 0.5];
  const full = digits.length === 3 ? [...digits].map((digit) => digit + digit).join('') : digits;
  const value = Number.parseInt(full, 16);
  return [((value >> 16) & 255) / 255, ((value >> 8) & 255) / 255, (value & 255) / 255];
}

function linear(channel: number): number {
  return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
}

/** Relative luminance of WCAG 2: 0 black, 1 white. */
export function luminance([red, green, blue]: readonly [number, number, number]): number {
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

/** Contrast ratio of WCAG 2 between two colors, 1–21. */
export function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(rgbOf(a)), luminance(rgbOf(b))].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}
