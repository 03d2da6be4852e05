/**
 * Tracks become places on the page, in CSS pixels of the scrolled content.
 *
 *   0    ruler (sticky)
 *   26   ▾ section                      SECTION_PX
 *   50     track  depth 0 |███|██|      PITCH_PX each, PAD_PX above and below
 *                 depth 1 |█|
 *   92     thin track    |▄▄▄|          a folded track: all depths within THIN_PX
 */

import type { RowPlaces } from '../../canvas/boxes';
import type { Track, TraceWindow } from './model';

export const SECTION_PX = 26;
export const PITCH_PX = 18;
export const BOX_PX = 17;
export const PAD_PX = 3;
const THIN_PX = 16;

export interface TrackPlace {
  readonly track: Track;
  readonly y: number;
  readonly height: number;
  readonly pitch: number;
  readonly boxHeight: number;
  readonly isFolded: boolean;
}

export interface SectionPlace {
  readonly name: string;
  readonly y: number;
  readonly height: number;
  readonly isFolded: boolean;
  readonly nTracks: number;
  readonly nEvents: number;
  /** Empty where folded. */
  readonly tracks: readonly TrackPlace[];
}

export interface Layout {
  readonly height: number;
  readonly sections: readonly SectionPlace[];
  readonly placeOfTrack: ReadonlyMap<number, TrackPlace>;
  readonly separators: Float32Array;
}

export function sectionKey(name: string): string {
  return `s:${name}`;
}

export function trackKey(id: number): string {
  return `t:${String(id)}`;
}

function sectionsOf(tracks: readonly Track[]): [string, Track[]][] {
  const sections = new Map<string, Track[]>();
  for (const track of tracks) {
    const members = sections.get(track.section);
    if (members) members.push(track);
    else sections.set(track.section, [track]);
  }
  return [...sections];
}

function placeTrack(track: Track, y: number, isFolded: boolean): TrackPlace {
  const isThin = isFolded && track.nDepths > 1;
  const pitch = isThin ? THIN_PX / track.nDepths : PITCH_PX;
  const boxHeight = isThin ? Math.max(1, Math.floor(pitch * 0.85)) : BOX_PX;
  return { track, y, height: (isThin ? THIN_PX : track.nDepths * PITCH_PX) + 2 * PAD_PX, pitch, boxHeight, isFolded: isThin };
}

export function layoutTracks(tracks: readonly Track[], folded: ReadonlySet<string>, topPx: number): Layout {
  const placeOfTrack = new Map<number, TrackPlace>();
  const separators: number[] = [];
  let y = topPx;
  const sections = sectionsOf(tracks).map(([name, members]): SectionPlace => {
    const top = y;
    const isFolded = folded.has(sectionKey(name));
    y += SECTION_PX;
    const places = isFolded ? [] : members.map((track) => {
      const place = placeTrack(track, y, folded.has(trackKey(track.id)));
      placeOfTrack.set(track.id, place);
      y += place.height;
      separators.push(y);
      return place;
    });
    const nEvents = members.reduce((sum, track) => sum + track.nEvents, 0);
    return { name, y: top, height: y - top, isFolded, nTracks: members.length, nEvents, tracks: places };
  });
  return { height: y, sections, placeOfTrack, separators: Float32Array.from(separators) };
}

export function rowTop(place: TrackPlace, depth: number): number {
  return place.y + PAD_PX + depth * place.pitch;
}

/** Where the rows of a window are in this layout; NaN for rows of folded sections. */
export function placeRows(window: TraceWindow, layout: Layout): RowPlaces {
  const n = window.rowTrack.length;
  const y = new Float32Array(n).fill(Number.NaN);
  const height = new Uint8Array(n);
  for (let row = 0; row < n; row++) {
    const place = layout.placeOfTrack.get(window.rowTrack[row] as number);
    if (!place) continue;
    y[row] = rowTop(place, window.rowDepth[row] as number);
    height[row] = place.boxHeight;
  }
  return { y, height };
}

/** Tracks with any part within [fromPx, toPx] of the content. */
export function tracksWithin(layout: Layout, fromPx: number, toPx: number): number[] {
  const ids: number[] = [];
  for (const section of layout.sections) {
    if (section.y > toPx || section.y + section.height < fromPx) continue;
    for (const { track, y, height } of section.tracks) if (y <= toPx && y + height >= fromPx) ids.push(track.id);
  }
  return ids;
}
