/**
 * Tracks become places on the page, in CSS pixels of the content. Pinned tracks are PIN_PX above everything
 * else.
 *
 *   0    ruler, with the row of steps above it (sticky)
 *   26   pinned tracks (sticky): at most half of the view, then they scroll by themselves
 *   48   ▾ section                      SECTION_PX
 *   74     track  depth 0 |███|██|      PITCH_PX each, PAD_PX above and below
 *                 depth 1 |█|
 *  116     thin track    |▄▄▄|          a folded track: all depths within THIN_PX
 *  138     counter       |_▁▃▂|         COUNTER_PX
 */

import { PIN_PX, type RowPlaces } from '../../../canvas/boxes';
import type { Track, TraceWindow } from '../data/model';
import { rowsShown, trackKey, type Arranged, type Section, type TrackView } from './track_view';

export const SECTION_PX = 26;
export const PITCH_PX = 18;
const BOX_PX = 17;
export const PAD_PX = 3;
const COUNTER_PX = 34;
const THIN_PX = 16;
/** Of the view, the share that the ruler and the pinned tracks take at most. */
const MAX_PINNED_SHARE = 0.5;

export interface TrackPlace {
  readonly track: Track;
  readonly y: number;
  readonly height: number;
  readonly pitch: number;
  readonly boxHeight: number;
  readonly nRows: number;
  readonly isFolded: boolean;
  readonly isPinned: boolean;
}

export interface SectionPlace {
  readonly section: Section;
  readonly y: number;
  readonly height: number;
  readonly isFolded: boolean;
  /** Recorded events: together those that the run has. */
  readonly nEvents: number;
  /** On tracks that show recorded events again. */
  readonly nDerived: number;
  /** For counters. */
  readonly nSamples: number;
  /** Empty if folded. */
  readonly tracks: readonly TrackPlace[];
}

export interface Layout {
  readonly height: number;
  /** The ruler's bottom on the screen. */
  readonly topPx: number;
  /** The bottom of the pinned tracks on the screen; `topPx` if there are none. */
  readonly pinnedBottomPx: number;
  /** The height of all pinned tracks, which may be more than what is visible. */
  readonly pinnedPx: number;
  readonly pinned: readonly TrackPlace[];
  readonly sections: readonly SectionPlace[];
  readonly placeOfTrack: ReadonlyMap<number, TrackPlace>;
  readonly separators: Float32Array;
  readonly nHidden: number;
}

export function isCounter(track: Track): boolean {
  return track.kind === 'counter';
}

function placeTrack(track: Track, y: number, view: TrackView, isPinned: boolean): TrackPlace {
  if (isCounter(track))
    return {
      track,
      y,
      height: COUNTER_PX + 2 * PAD_PX,
      pitch: COUNTER_PX,
      boxHeight: COUNTER_PX,
      nRows: 1,
      isFolded: false,
      isPinned,
    };
  const nRows = rowsShown(track, view);
  const isThin = view.folded.has(trackKey(track.id)) && nRows > 1;
  const pitch = isThin ? THIN_PX / nRows : PITCH_PX;
  const boxHeight = isThin ? Math.max(1, Math.floor(pitch * 0.85)) : BOX_PX;
  return {
    track,
    y,
    height: (isThin ? THIN_PX : nRows * PITCH_PX) + 2 * PAD_PX,
    pitch,
    boxHeight,
    nRows,
    isFolded: isThin,
    isPinned,
  };
}

function sizeOf({ tracks }: Section, isCounted: (track: Track) => boolean): number {
  return tracks.reduce((sum, track) => sum + (isCounted(track) ? track.nEvents : 0), 0);
}

/** `viewPx`: the height of the view. */
export function layoutTracks(
  arranged: Arranged,
  view: TrackView,
  topPx: number,
  viewPx = Number.POSITIVE_INFINITY,
): Layout {
  const placeOfTrack = new Map<number, TrackPlace>();
  const separators: number[] = [];
  const stack = (tracks: readonly Track[], from: number, isPinned: boolean): TrackPlace[] => {
    let y = from;
    return tracks.map((track) => {
      const place = placeTrack(track, y, view, isPinned);
      placeOfTrack.set(track.id, place);
      y += place.height;
      separators.push(y);
      return place;
    });
  };
  const bottomOf = (places: readonly TrackPlace[], empty: number): number => {
    const last = places.at(-1);
    return last ? last.y + last.height : empty;
  };
  const pinned = stack(arranged.pinned, topPx - PIN_PX, true);
  const pinnedPx = bottomOf(pinned, topPx - PIN_PX) + PIN_PX - topPx;
  const pinnedBottomPx = Math.max(topPx, Math.min(topPx + pinnedPx, Math.floor(viewPx * MAX_PINNED_SHARE)));
  let y = pinnedBottomPx;
  const sections = arranged.sections.map((section): SectionPlace => {
    const top = y;
    const isFolded = view.folded.has(section.key);
    const places = isFolded ? [] : stack(section.tracks, top + SECTION_PX, false);
    y = bottomOf(places, top + SECTION_PX);
    return {
      section,
      y: top,
      height: y - top,
      isFolded,
      nEvents: sizeOf(section, (track) => !isCounter(track) && !track.isDerived),
      nDerived: sizeOf(section, (track) => !isCounter(track) && track.isDerived),
      nSamples: sizeOf(section, isCounter),
      tracks: places,
    };
  });
  return {
    height: y,
    topPx,
    pinnedBottomPx,
    pinnedPx,
    pinned,
    sections,
    placeOfTrack,
    separators: Float32Array.from(separators),
    nHidden: arranged.nHidden,
  };
}

export function rowTop(place: TrackPlace, depth: number): number {
  return place.y + PAD_PX + depth * place.pitch;
}

/** The positions of a window's rows in this layout; NaN for rows that are not shown. */
export function placeRows(window: TraceWindow, layout: Layout): RowPlaces {
  const n = window.rowTrack.length;
  const y = new Float32Array(n).fill(Number.NaN);
  const height = new Uint8Array(n);
  for (let row = 0; row < n; row++) {
    const place = layout.placeOfTrack.get(window.rowTrack[row] as number);
    const depth = window.rowDepth[row] as number;
    if (!place || depth >= place.nRows) continue;
    y[row] = rowTop(place, depth);
    height[row] = place.boxHeight;
  }
  return { y, height };
}

/** How far the pinned tracks can be scrolled. */
export function maxPinScroll({ topPx, pinnedPx, pinnedBottomPx }: Layout): number {
  return topPx + pinnedPx - pinnedBottomPx;
}

/** Tracks with any part within [fromPx, toPx] of the scrolled content, and the pinned ones. */
export function tracksWithin(layout: Layout, fromPx: number, toPx: number): number[] {
  const ids = layout.pinned.map(({ track }) => track.id);
  for (const section of layout.sections) {
    if (section.y > toPx || section.y + section.height < fromPx) continue;
    for (const { track, y, height } of section.tracks)
      if (y <= toPx && y + height >= fromPx) ids.push(track.id);
  }
  return ids;
}

/** The height of the content at this height of the screen. */
export function contentY(layout: Layout, screenY: number, scrollPx: number, pinScrollPx: number): number {
  return screenY < layout.pinnedBottomPx ? screenY + pinScrollPx - PIN_PX : screenY + scrollPx;
}

/** The track at a height of the content. */
export function trackAt(layout: Layout, y: number): TrackPlace | null {
  for (const place of layout.placeOfTrack.values())
    if (y >= place.y && y < place.y + place.height) return place;
  return null;
}
