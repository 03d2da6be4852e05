/** The meaning of the colors: only of the families that occur in the whole trace. */

import type { VNode } from 'preact';
import { SHADES } from '../../../canvas/palette';
import { PopupButton } from '../../../widgets/menu';
import { FAMILIES } from '../data/names';
import type { Timeline } from '../state/timeline';

export function Legend({ timeline }: { timeline: Timeline }): VNode {
  return (
    <PopupButton label="Colors" title="Colors">
      {() => {
        const present = new Set(
          [...(timeline.overview?.boxes.style ?? []), ...(timeline.window?.boxes.style ?? [])].map((style) =>
            Math.floor(style / SHADES),
          ),
        );
        return (
          <ul class="tv-legend">
            {FAMILIES.map(
              ({ name, title, token }, family) =>
                present.has(family) && (
                  <li key={name}>
                    <i style={{ background: `var(${token})` }} />
                    {title}
                  </li>
                ),
            )}
            <li>
              <i class="tv-hatched" />
              Several events too short to draw, with their number; zoom in to separate them
            </li>
            <li>
              <i class="tv-step-line" />
              Start of a step
            </li>
            <li class="muted">A name has the same shade everywhere.</li>
          </ul>
        );
      }}
    </PopupButton>
  );
}
