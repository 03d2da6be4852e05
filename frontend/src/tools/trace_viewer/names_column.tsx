/**
 * The left column: sections (sticky while their tracks scroll by) and the names of the tracks in sight.
 * Clicking a name folds its track; next to it, on hover or focus, are buttons to pin and hide it. Tracks are
 * reordered by dragging, or with Alt + ↑ ↓.
 */

import { useSignal, type Signal } from '@preact/signals';
import type { VNode } from 'preact';
import { PIN_PX } from '../../canvas/boxes';
import { plural } from '../../base/units';
import { scaleOf } from './counters';
import { Icon } from './icons';
import { isCounter, type SectionPlace, type TrackPlace } from './layout';
import type { Timeline } from './timeline';
import { hide, move, pin, trackKey } from './track_view';

/** While a track is dragged: the track, and the one it would be placed before (−1: the end). */
interface Carried {
  readonly id: number;
  readonly before: number;
}

const CARRY_FROM_PX = 5;

/** The track before which one dropped at this height is placed: the first whose middle is below; −1: none. */
export function targetOf(places: readonly TrackPlace[], y: number): number {
  return places.find((place) => y < place.y + place.height / 2)?.track.id ?? -1;
}

interface NameProps {
  place: TrackPlace;
  /** From the top of the containing element, in the content. */
  top: number;
  siblings: readonly TrackPlace[];
  carried: Signal<Carried | null>;
  timeline: Timeline;
}

function carry({ place, siblings, carried, timeline }: NameProps, event: PointerEvent): void {
  if (event.button !== 0) return;
  const row = event.currentTarget as HTMLElement;
  const fromY = event.clientY;
  const onMove = (to: PointerEvent): void => {
    if (!carried.value && Math.abs(to.clientY - fromY) < CARRY_FROM_PX) return;
    if (!carried.value) row.setPointerCapture(event.pointerId);
    const y = place.y + (to.clientY - row.getBoundingClientRect().top);
    carried.value = { id: place.track.id, before: targetOf(siblings, y) };
  };
  const onUp = (): void => {
    row.removeEventListener('pointermove', onMove);
    const drop = carried.value;
    carried.value = null;
    if (drop) timeline.changeTracks(move(timeline.trackView.value, drop.id, drop.before));
  };
  row.addEventListener('pointermove', onMove);
  for (const type of ['pointerup', 'pointercancel']) row.addEventListener(type, onUp, { once: true });
}

function shift({ place, siblings, timeline }: NameProps, event: KeyboardEvent): void {
  if (!event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return;
  event.preventDefault();
  const index = siblings.indexOf(place);
  const before = event.key === 'ArrowUp' ? siblings[index - 1] : siblings[index + 2];
  if (event.key === 'ArrowUp' && !before) return;
  timeline.changeTracks(move(timeline.trackView.value, place.track.id, before?.track.id ?? -1));
}

/** This many characters at the end are never cut: the numbers there distinguish threads. */
const TAIL = 5;

/** Truncated in the middle if it is too long and ends with a number. */
function MiddleCut({ text }: { text: string }): VNode {
  if (!/\d{5}\)?$/.test(text)) return <span>{text}</span>;
  return (
    <span class="tv-cut">
      <span>{text.slice(0, -TAIL)}</span>
      <span>{text.slice(-TAIL)}</span>
    </span>
  );
}

/** The range that the height of a counter's chart represents, next to it. */
function Scale({ track }: { track: TrackPlace['track'] }): VNode {
  const { top, bottom } = scaleOf(track);
  return (
    <span class="tv-scale" role="img" aria-label={`From ${bottom} to ${top}`}>
      <small>{top}</small>
      <small>{bottom}</small>
    </span>
  );
}

function TrackName(props: NameProps): VNode {
  const { place, top, carried, timeline } = props;
  const { track } = place;
  const view = timeline.trackView.value;
  const style = { top: `${String(place.y - top)}px`, height: `${String(place.height)}px` };
  const tip = `${track.name} · ${plural(track.nEvents, isCounter(track) ? 'sample' : 'event')}${track.isDerived ? ' · derived by the viewer' : ''}`;
  const isFoldable = track.nDepths > 1 && !isCounter(track);
  const isDropTarget = carried.value && carried.value.id !== track.id && carried.value.before === track.id;
  const state = [carried.value?.id === track.id ? 'is-carried' : '', isDropTarget ? 'is-target' : ''].join(
    ' ',
  );
  return (
    <div
      class={`tv-track ${state}`}
      style={style}
      onPointerDown={(event) => {
        carry(props, event);
      }}
    >
      <button
        type="button"
        class="tv-name"
        title={tip}
        aria-expanded={isFoldable ? !place.isFolded : undefined}
        onClick={() => {
          if (isFoldable) timeline.toggle(trackKey(track.id));
        }}
        onKeyDown={(event) => {
          shift(props, event);
        }}
      >
        <i aria-hidden="true">{isFoldable ? (place.isFolded ? '▸' : '▾') : ''}</i>
        <MiddleCut text={place.isPinned && track.host ? `${track.section} · ${track.name}` : track.name} />
      </button>
      {isCounter(track) && <Scale track={track} />}
      <span class="tv-track-acts">
        {!isCounter(track) && (
          <button
            type="button"
            aria-label={`Totals of ${track.name}`}
            data-tip="Totals in the window"
            onClick={() => {
              timeline.markTrack(track.id);
            }}
          >
            <Icon name="sum" />
          </button>
        )}
        <button
          type="button"
          aria-label={`${place.isPinned ? 'Unpin' : 'Pin'} ${track.name}`}
          aria-pressed={place.isPinned}
          data-tip={place.isPinned ? 'Unpin' : 'Pin to the top'}
          onClick={() => {
            timeline.changeTracks(pin(view, track.id));
          }}
        >
          <Icon name="pin" />
        </button>
        <button
          type="button"
          aria-label={`Hide ${track.name}`}
          data-tip="Hide"
          onClick={() => {
            timeline.changeTracks(hide(view, [track.id], true));
          }}
        >
          <Icon name="hide" />
        </button>
      </span>
    </div>
  );
}

function Section(props: {
  place: SectionPlace;
  from: number;
  to: number;
  carried: Signal<Carried | null>;
  timeline: Timeline;
}): VNode {
  const { place, from, to, timeline, carried } = props;
  const { section } = place;
  const shown = place.tracks.filter(({ y, height }) => y <= to && y + height >= from);
  const name = section.title || 'Other';
  return (
    <section
      class="tv-section"
      style={{ top: `${String(place.y)}px`, height: `${String(place.height)}px` }}
      aria-label={name}
    >
      <div class="tv-section-head">
        <button
          type="button"
          class="tv-name"
          aria-expanded={!place.isFolded}
          onClick={() => {
            timeline.toggle(section.key);
          }}
        >
          <i aria-hidden="true">{place.isFolded ? '▸' : '▾'}</i> {name}
          <small>
            {plural(section.tracks.length, 'track')}
            {place.nEvents > 0 && ` · ${plural(place.nEvents, 'event')}`}
            {place.nSamples > 0 && ` · ${plural(place.nSamples, 'sample')}`}
          </small>
        </button>
        <span class="tv-track-acts">
          <button
            type="button"
            aria-label={`Hide all tracks of ${name}`}
            data-tip="Hide these tracks"
            onClick={() => {
              timeline.changeTracks(
                hide(
                  timeline.trackView.value,
                  section.tracks.map(({ id }) => id),
                  true,
                ),
              );
            }}
          >
            <Icon name="hide" />
          </button>
        </span>
      </div>
      {shown.map((each) => (
        <TrackName
          key={each.track.id}
          place={each}
          top={place.y}
          siblings={place.tracks}
          carried={carried}
          timeline={timeline}
        />
      ))}
    </section>
  );
}

/** The names of the pinned tracks; they stay in place while the others scroll. */
export function PinnedNames({ timeline }: { timeline: Timeline }): VNode | null {
  const carried = useSignal<Carried | null>(null);
  const { pinned } = timeline.layout.value;
  if (pinned.length === 0) return null;
  return (
    <div class="tv-pinned" role="group" aria-label="Pinned tracks">
      {pinned.map((place) => (
        <TrackName
          key={place.track.id}
          place={place}
          top={-PIN_PX}
          siblings={pinned}
          carried={carried}
          timeline={timeline}
        />
      ))}
    </div>
  );
}

export function NamesColumn({
  timeline,
  fromPx,
  toPx,
}: {
  timeline: Timeline;
  fromPx: number;
  toPx: number;
}): VNode {
  const carried = useSignal<Carried | null>(null);
  return (
    <>
      {timeline.layout.value.sections.map((place) => (
        <Section
          key={place.section.key}
          place={place}
          from={fromPx}
          to={toPx}
          carried={carried}
          timeline={timeline}
        />
      ))}
    </>
  );
}
