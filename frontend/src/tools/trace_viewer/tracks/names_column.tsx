/**
 * The left column: sections (sticky while their tracks scroll by) and the names of the tracks in sight.
 * Clicking a name folds its track; next to it, on hover or focus, are buttons to show fewer or more of its rows,
 * to pin and hide it. Tracks are reordered by dragging, or with Alt + ↑ ↓; ← → change the rows.
 */

import { useSignal, type Signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { PIN_PX } from '../../../canvas/boxes';
import { plural } from '../../../base/units';
import { scaleOf } from '../data/counters';
import { Icon } from '../../../widgets/icons';
import { isCounter, maxPinScroll, type SectionPlace, type TrackPlace } from '../drawing/layout';
import { namesPx, nameRoom, textWidth } from './names_width';
import { shortNames } from './short_names';
import type { Timeline } from '../state/timeline';
import { changeRows, hide, move, pin, trackKey } from '../drawing/track_view';

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
  /** The names as they fit the column. */
  texts: ReadonlyMap<string, string>;
  carried: Signal<Carried | null>;
  timeline: Timeline;
}

function fullName({ isPinned, track }: TrackPlace): string {
  return isPinned && track.host ? `${track.section} · ${track.name}` : track.name;
}

/** The names of tracks as they fit the column; computed again when it or they change. */
function useTexts(places: readonly TrackPlace[]): ReadonlyMap<string, string> {
  const widthPx = namesPx.value;
  return useMemo(() => {
    const counters = places.filter(({ track }) => isCounter(track));
    const others = places.filter(({ track }) => !isCounter(track));
    const room = nameRoom(widthPx);
    return new Map([
      ...shortNames(counters.map(fullName), room - scaleRoom(counters), textWidth),
      ...shortNames(others.map(fullName), room, textWidth),
    ]);
  }, [places, widthPx]);
}

/** The room that the widest of the counters' scales takes beside the names. */
function scaleRoom(counters: readonly TrackPlace[]): number {
  const labels = counters.flatMap(({ track }) => Object.values(scaleOf(track)));
  return Math.max(0, ...labels.map(textWidth));
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

/** With the focus on a name: ← shows a row less of its track, → a row more. */
function levels({ place, timeline }: NameProps, event: KeyboardEvent): void {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (by === undefined || event.altKey || event.ctrlKey || event.metaKey || place.track.nDepths < 2) return;
  event.preventDefault();
  timeline.changeTracks(changeRows(timeline.trackView.value, place.track, by));
}

function LevelButtons({ place, timeline }: NameProps): VNode | null {
  const { track, nRows } = place;
  if (track.nDepths < 2 || isCounter(track)) return null;
  const button = (by: number, title: string, sign: string, isOff: boolean): VNode => (
    <button
      type="button"
      aria-label={`${title} of ${track.name}`}
      data-tip={`${title}: ${String(nRows)} of ${String(track.nDepths)} are shown`}
      aria-disabled={isOff}
      onClick={() => {
        timeline.changeTracks(changeRows(timeline.trackView.value, track, by));
      }}
    >
      {sign}
    </button>
  );
  return (
    <>
      {button(-1, 'Fewer rows', '−', nRows <= 1)}
      {button(1, 'More rows', '+', nRows >= track.nDepths)}
    </>
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
        data-tip={tip}
        aria-label={fullName(place)}
        aria-expanded={isFoldable ? !place.isFolded : undefined}
        onClick={() => {
          if (isFoldable) timeline.toggle(trackKey(track.id));
        }}
        onKeyDown={(event) => {
          shift(props, event);
          levels(props, event);
        }}
      >
        <i aria-hidden="true">{isFoldable ? (place.isFolded ? '▸' : '▾') : ''}</i>
        <span>{props.texts.get(fullName(place)) ?? track.name}</span>
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
        <LevelButtons {...props} />
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
  /** Of all tracks: heads stay at the top until the next one covers them. */
  bottomPx: number;
  from: number;
  to: number;
  carried: Signal<Carried | null>;
  timeline: Timeline;
}): VNode {
  const { place, from, to, timeline, carried } = props;
  const { section } = place;
  const shown = place.tracks.filter(({ y, height }) => y <= to && y + height >= from);
  const name = section.title || 'Other';
  const texts = useTexts(place.tracks);
  return (
    <section
      class="tv-section"
      style={{ top: `${String(place.y)}px`, height: `${String(props.bottomPx - place.y)}px` }}
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
            {place.nDerived > 0 && ` · ${plural(place.nDerived, 'derived', 'derived')}`}
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
          texts={texts}
          carried={carried}
          timeline={timeline}
        />
      ))}
    </section>
  );
}

/**
 * The names of the pinned tracks; they stay in place while the others scroll. Taller than their half of the view,
 * they scroll by themselves, and the boxes with them.
 */
export function PinnedNames({ timeline }: { timeline: Timeline }): VNode | null {
  const carried = useSignal<Carried | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const { pinned, topPx, pinnedPx, pinnedBottomPx } = timeline.layout.value;
  const scrollPx = timeline.pinScrollPx.value;
  const texts = useTexts(pinned);
  const isTall = maxPinScroll(timeline.layout.value) > 0;
  useLayoutEffect(() => {
    if (scroller.current && scroller.current.scrollTop !== scrollPx) scroller.current.scrollTop = scrollPx;
  }, [scrollPx, pinned]);
  if (pinned.length === 0) return null;
  return (
    <div
      class={isTall ? 'tv-pinned is-tall' : 'tv-pinned'}
      style={{ top: `${String(topPx)}px`, height: `${String(pinnedBottomPx - topPx)}px` }}
      role="group"
      aria-label="Pinned tracks"
      tabIndex={isTall ? 0 : -1}
      ref={scroller}
      onScroll={(event) => {
        timeline.stack.scrollPins(event.currentTarget.scrollTop - timeline.pinScrollPx.value);
      }}
    >
      <div style={{ height: `${String(pinnedPx)}px` }}>
        {pinned.map((place) => (
          <TrackName
            key={place.track.id}
            place={place}
            top={topPx - PIN_PX}
            siblings={pinned}
            texts={texts}
            carried={carried}
            timeline={timeline}
          />
        ))}
      </div>
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
  const { sections, height } = timeline.layout.value;
  return (
    <>
      {sections.map((place) => (
        <Section
          key={place.section.key}
          place={place}
          bottomPx={height}
          from={fromPx}
          to={toPx}
          carried={carried}
          timeline={timeline}
        />
      ))}
    </>
  );
}
