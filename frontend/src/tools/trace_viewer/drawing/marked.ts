/**
 * A marked interval, of all tracks or of some: as the stage draws it, as the request for its totals, as URL
 * text.
 */

import { format } from '../../../base/units';
import type { Stretch } from '../../../canvas/overlay';
import { PAD_PX, rowTop, type Layout, type TrackPlace } from './layout';

export interface Marked {
  readonly startPs: number;
  readonly endPs: number;
  /** null: all tracks that are shown. */
  readonly trackIds: readonly number[] | null;
  /** Of a single track, the first and last row; null: all. */
  readonly depths: readonly [number, number] | null;
}

export function labelOf({ startPs, endPs }: Marked): string {
  return format(endPs - startPs, 'ps');
}

function rowsOf({ trackIds, depths }: Marked, layout: Layout): Stretch['rows'] {
  const places = (trackIds ?? []).flatMap((id) => layout.placeOfTrack.get(id) ?? []);
  const only = places.length === 1 ? places[0] : undefined;
  if (only && depths)
    return { topPx: rowTop(only, depths[0]) - 1, bottomPx: rowTop(only, depths[1]) + only.boxHeight + 1 };
  if (places.length === 0) return null;
  return {
    topPx: Math.min(...places.map(({ y }) => y)),
    bottomPx: Math.max(...places.map(({ y, height }) => y + height)),
  };
}

export function stretchOf(marked: Marked, layout: Layout): Omit<Stretch, 'label'> {
  return {
    startPs: marked.startPs,
    endPs: marked.endPs,
    rows: marked.trackIds ? rowsOf(marked, layout) : null,
  };
}

/** The tracks between two heights of the content, and within a single one the rows. */
export function boxOf(layout: Layout, startPs: number, endPs: number, fromY: number, toY: number): Marked {
  const [top, bottom] = fromY < toY ? [fromY, toY] : [toY, fromY];
  const places = [...layout.placeOfTrack.values()].filter(({ y, height }) => y <= bottom && y + height > top);
  const only = places.length === 1 ? places[0] : undefined;
  return {
    startPs: Math.min(startPs, endPs),
    endPs: Math.max(startPs, endPs),
    trackIds: places.map(({ track }) => track.id),
    depths: only ? depthsWithin(only, top, bottom) : null,
  };
}

function depthsWithin(place: TrackPlace, top: number, bottom: number): readonly [number, number] | null {
  if (place.nRows < 2) return null;
  const rowAt = (y: number): number =>
    Math.max(0, Math.min(place.nRows - 1, Math.floor((y - place.y - PAD_PX) / place.pitch)));
  const rows: readonly [number, number] = [rowAt(top), rowAt(bottom)];
  return rows[0] === 0 && rows[1] === place.nRows - 1 ? null : rows;
}

/** The recorded tracks on the page, null if they are all: derived ones repeat the same time. */
export function shownTrackIds({ nHidden, placeOfTrack }: Layout): readonly number[] | null {
  if (nHidden === 0) return null;
  return [...placeOfTrack.values()].filter(({ track }) => !track.isDerived).map(({ track }) => track.id);
}

/** The request for its totals. `shownIds`: the tracks on the page, null if they are all. */
export function totalsParams(
  { startPs, endPs, trackIds, depths }: Marked,
  shownIds: readonly number[] | null,
): Record<string, string> {
  const ids = trackIds ?? shownIds;
  return {
    start_ps: String(Math.floor(startPs)),
    end_ps: String(Math.ceil(endPs)),
    ...(ids ? { tracks: ids.join(',') } : {}),
    ...(depths ? { depth_from: String(depths[0]), depth_to: String(depths[1]) } : {}),
  };
}

/** "START-END", "START-END@TRACK.TRACK", "START-END@TRACK:FROM-TO". */
export function markText({ startPs, endPs, trackIds, depths }: Marked): string {
  const tracks = trackIds ? `@${trackIds.join('.')}${depths ? `:${depths.join('-')}` : ''}` : '';
  return `${String(Math.round(startPs))}-${String(Math.round(endPs))}${tracks}`;
}

export function parseMark(text: string | undefined): Marked | null {
  const match = /^(\d+)-(\d+)(?:@([\d.]*)(?::(\d+)-(\d+))?)?$/.exec(text ?? '');
  if (!match) return null;
  const [startPs, endPs] = [Number(match[1]), Number(match[2])];
  if (!(endPs > startPs) || !Number.isFinite(endPs)) return null;
  const trackIds = match[3] === undefined ? null : match[3].split('.').filter(Boolean).map(Number);
  return {
    startPs,
    endPs,
    trackIds,
    depths: match[4] === undefined ? null : [Number(match[4]), Number(match[5])],
  };
}
