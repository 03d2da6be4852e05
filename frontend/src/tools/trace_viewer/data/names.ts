/**
 * A box's color: the family gives the kind of work, the shade distinguishes names. The server sends both
 * (`family`, `color_key`).
 */

import { SHADES } from '../../../canvas/palette';

export interface Family {
  readonly name: string;
  /** The text in the legend. */
  readonly title: string;
  /** The color, a token of the theme. */
  readonly token: string;
}

/** In the order of the server's numbers. */
export const FAMILIES: readonly Family[] = [
  { name: 'other', title: 'Other', token: '--q-7' },
  { name: 'python', title: 'Python call', token: '--c-host' },
  { name: 'input', title: 'tf.data, input', token: '--c-input' },
  { name: 'op', title: 'XLA or framework op', token: '--c-compute' },
  { name: 'kernel', title: 'GPU kernel', token: '--q-6' },
  { name: 'memcpy', title: 'Memory copy', token: '--c-d2d' },
  { name: 'collective', title: 'Collective', token: '--c-collective' },
  { name: 'runtime', title: 'Runtime', token: '--c-launch' },
  { name: 'step', title: 'Step', token: '--c-idle' },
  { name: 'module', title: 'XLA module', token: '--q-0' },
];

export function styleOf(family: number, colorKey: number): number {
  return (family < FAMILIES.length ? family : 0) * SHADES + (((colorKey % SHADES) + SHADES) % SHADES);
}
