/** The few icons on small buttons, drawn so that every system shows the same. */

import type { VNode } from 'preact';

const PATHS = {
  pin: 'M5 1.5h6M6 1.5v5l-2 3h8l-2-3v-5M8 9.5v5',
  hide: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  grip: 'M6 3v.01M10 3v.01M6 8v.01M10 8v.01M6 13v.01M10 13v.01',
  sum: 'M12 3.5V2.5H4l4 5.5-4 5.5h8v-1',
  up: 'M3 10l5-5 5 5',
  down: 'M3 6l5 5 5-5',
} as const;

export function Icon({ name }: { name: keyof typeof PATHS }): VNode {
  return (
    <svg class="tv-icon" viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width={name === 'grip' ? 2 : 1.5}
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
