/** Values of counters as text, in the unit that the counter's name tells. */

import { format, SPACE, threeDigits } from '../../base/units';
import type { Track } from './model';

/** Units that scale with the value; others are written as they are. */
const SCALED = new Set(['bytes', 'bytes_per_s']);

export function counterText(value: number, unit: string): string {
  if (SCALED.has(unit)) return format(value, unit);
  return unit ? threeDigits(value) + SPACE + unit : format(value, 'count');
}

/** What the top and the bottom of a counter's chart stand for: zero is always in it. */
export function scaleOf({ minValue, maxValue, unit }: Track): {
  readonly top: string;
  readonly bottom: string;
} {
  return {
    top: counterText(Math.max(0, maxValue), unit),
    bottom: minValue < 0 ? counterText(minValue, unit) : '0',
  };
}
