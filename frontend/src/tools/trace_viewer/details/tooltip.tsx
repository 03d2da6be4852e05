/** The box under the pointer, in two or three lines. */

import type { VNode } from 'preact';
import { format, plural } from '../../../base/units';
import { counterText } from '../data/counters';
import type { FlowEnd } from '../drawing/arrows';
import type { Hover, Timeline } from '../state/timeline';

function endText({ name, track }: FlowEnd, timeline: Timeline): string {
  const on = timeline.facts.value?.tracks.find(({ id }) => id === track);
  return [name, on?.name].filter(Boolean).join(' on ');
}

function Lines({ hover, timeline }: { hover: Hover; timeline: Timeline }): VNode | null {
  const { picked, counter, arrow } = hover;
  if (arrow && !picked)
    return (
      <>
        <b>{arrow.kind}</b>
        <span>from {endText(arrow.from, timeline)}</span>
        <span>to {endText(arrow.to, timeline)}</span>
        <small>click: go to the other end</small>
      </>
    );
  if (counter) {
    const { name, unit, minValue, maxValue } = counter.track;
    return (
      <>
        <b>{name}</b>
        <span>{counterText(counter.value, unit)}</span>
        <small>
          {counterText(minValue, unit)} to {counterText(maxValue, unit)} in the whole trace
        </small>
      </>
    );
  }
  if (!picked) return null;
  if (picked.nMerged <= 1)
    return (
      <>
        <b>{picked.name}</b>
        <span>{format(picked.durationPs, 'ps')}</span>
      </>
    );
  const isKnown = picked.longestPs !== picked.durationPs;
  return (
    <>
      <b>{plural(picked.nMerged, 'event')} in this box</b>
      <span>
        longest{isKnown ? `, about ${format(picked.longestPs, 'ps')}` : ''}: {picked.name}
      </span>
      <small>{format(picked.durationPs, 'ps')} wide; zoom in to see them</small>
    </>
  );
}

export function Tooltip({ hover, timeline }: { hover: Hover; timeline: Timeline }): VNode {
  const style = { '--x': `${String(Math.round(hover.x))}px`, '--y': `${String(Math.round(hover.y))}px` };
  return (
    <div class="tv-tip" style={style} role="presentation">
      <Lines hover={hover} timeline={timeline} />
    </div>
  );
}
