/** What the colours mean: only of the families in the trace's whole picture. */

import type { VNode } from 'preact';
import { SHADES } from '../../canvas/palette';
import { PopupButton } from '../../widgets/menu';
import { FAMILIES } from './names';
import type { Timeline } from './timeline';

export function Legend({ timeline }: { timeline: Timeline }): VNode {
  return (
    <PopupButton label="Colours" title="Colours">
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
              Several events too short to draw: it says how many; zoom in and they come apart
            </li>
            <li>
              <i class="tv-step-line" />
              Beginning of a step
            </li>
            <li class="muted">A name has the same shade of its colour everywhere.</li>
          </ul>
        );
      }}
    </PopupButton>
  );
}
