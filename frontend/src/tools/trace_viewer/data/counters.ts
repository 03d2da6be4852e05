/** Values of counters as text, in the unit from the counter's name. */

import { format, spaced, threeDigits } from '../../../base/units';
import type { Track } from './model';

/** Units that scale with the value; others are printed unchanged. */
const SCALED = new Set(['bytes', 'bytes_per_s']);

export function counterText(value: number, unit: string): string {
  if (SCALED.has(unit)) return format(value, unit);
  return unit ? threeDigits(value) + spaced(unit) : format(value, 'count');
}

/** The values at the top and bottom of a counter's chart: the range always includes zero. */
export function scaleOf({ minValue, maxValue, unit }: Track): {
  readonly top: string;
  readonly bottom: string;
} {
  return {
    top: counterText(Math.max(0, maxValue), unit),
    bottom: minValue < 0 ? counterText(minValue, unit) : '0',
  };
}
