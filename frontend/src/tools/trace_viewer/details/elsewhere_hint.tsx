/** Where the tracks in sight are empty: a hint with a link to the nearest events. */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { Rest } from '../../../base/rest';
import { format, plural } from '../../../base/units';
import { decodeDetails } from '../data/details_model';
import { elsewhere, type Elsewhere } from '../drawing/nothing_here';
import { pickedEvent } from '../drawing/picking';
import type { Timeline } from '../state/timeline';

/** Delay after the last frame. */
const REST_MS = 250;

function find(timeline: Timeline): Elsewhere | null {
  const { window, overview, camera } = timeline;
  if (!window || !overview || timeline.loader.isBusy.value || camera.isHeld) return null;
  return elsewhere(window, overview, timeline.layout.value, camera.view, new Set(timeline.tracksInSight()));
}

/** Brings it into view: for a merged box its longest event, whose position comes from the server. */
async function goThere(timeline: Timeline, { side, picked }: Elsewhere): Promise<void> {
  const isMerged = picked.nMerged > 1 && (side === 'left' || side === 'right');
  const details = isMerged
    ? decodeDetails(await timeline.ask('event', { event: String(picked.event) }))
    : null;
  const to = details ? pickedEvent(details, details.depth) : picked;
  timeline.leapTo(to);
}

const WORDS: Readonly<Record<Elsewhere['side'], { arrow: string; where: string }>> = {
  left: { arrow: '←', where: 'earlier' },
  right: { arrow: '→', where: 'later' },
  up: { arrow: '↑', where: 'in tracks above' },
  down: { arrow: '↓', where: 'in tracks below' },
};

export function ElsewhereHint({ timeline }: { timeline: Timeline }): VNode | null {
  const nearest = useSignal<Elsewhere | null>(null);
  useEffect(() => {
    const rest = new Rest(REST_MS, () => {
      nearest.value = find(timeline);
    });
    rest.note();
    const stop = timeline.onFrame(() => {
      rest.note();
    });
    return () => {
      rest.cancel();
      stop();
    };
  }, [timeline]);
  if (!nearest.value) return null;
  const { side, picked, gapPs } = nearest.value;
  const { arrow, where } = WORDS[side];
  const label = picked.nMerged > 1 ? plural(picked.nMerged, 'event') : picked.name;
  return (
    <div class={`tv-elsewhere is-${side}`} role="status">
      <button
        type="button"
        class="button"
        title={label}
        onClick={() => {
          const to = nearest.value;
          nearest.value = null;
          if (to)
            void goThere(timeline, to).catch((error: unknown) => {
              timeline.loader.refusal.value = error;
            });
        }}
      >
        <b aria-hidden="true">{arrow}</b> Nothing here; the nearest events are{' '}
        {gapPs > 0
          ? `${format(gapPs, 'ps')} ${where}`
          : side === 'up' || side === 'down'
            ? where
            : 'close by'}
      </button>
    </div>
  );
}
