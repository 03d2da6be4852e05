/**
 * The user's arrangement of tracks: which are hidden, folded, pinned, moved, and their depth. Tracks and this
 * become sections in order; this becomes a piece of the URL and back. Tracks are identified by their ids,
 * sections by their first track's.
 */

import { matches, wordsOf } from '../../../base/search';
import type { Track } from '../data/model';

export interface TrackView {
  readonly pinned: readonly number[];
  readonly hidden: ReadonlySet<number>;
  /** Keys of folded sections and tracks. */
  readonly folded: ReadonlySet<string>;
  /**
   * Moved tracks, one after the other: [track, the track it is now placed before; −1: the end of its
   * section].
   */
  readonly moves: readonly (readonly [number, number])[];
  readonly filter: string;
  /** Rows shown of each track; 0: all. */
  readonly maxDepths: number;
  /** Rows shown of single tracks, instead of `maxDepths`. */
  readonly rows: ReadonlyMap<number, number>;
  /** Tracks without an event in the window are hidden. */
  readonly hidesEmpty: boolean;
}

export const PLAIN: TrackView = {
  pinned: [],
  hidden: new Set(),
  folded: new Set(),
  moves: [],
  filter: '',
  maxDepths: 0,
  rows: new Map(),
  hidesEmpty: false,
};

export interface Section {
  readonly key: string;
  readonly host: string;
  readonly title: string;
  readonly tracks: readonly Track[];
}

export function sectionKey(firstTrack: number): string {
  return `s${String(firstTrack)}`;
}

export function trackKey(id: number): string {
  return `t${String(id)}`;
}

/** All sections with all their tracks, in the server's order. */
export function sectionsOf(tracks: readonly Track[]): Section[] {
  const sections = new Map<string, Track[]>();
  for (const track of tracks) {
    const name = `${track.host}\n${track.section}`;
    const members = sections.get(name);
    if (members) members.push(track);
    else sections.set(name, [track]);
  }
  const nHosts = new Set(tracks.map(({ host }) => host)).size;
  return [...sections.values()].map((members) => {
    const { id, host, section } = members[0] as Track;
    return {
      key: sectionKey(id),
      host,
      title: nHosts > 1 ? `${host} · ${section}` : section,
      tracks: members,
    };
  });
}

function moved(tracks: readonly Track[], moves: TrackView['moves']): readonly Track[] {
  const ordered = [...tracks];
  for (const [id, before] of moves) {
    const from = ordered.findIndex((track) => track.id === id);
    if (from < 0) continue;
    const [track] = ordered.splice(from, 1) as [Track];
    const to = ordered.findIndex((other) => other.id === before);
    ordered.splice(to < 0 ? (before < 0 ? ordered.length : from) : to, 0, track);
  }
  return ordered;
}

export interface Arranged {
  readonly pinned: readonly Track[];
  readonly sections: readonly Section[];
  readonly nHidden: number;
}

/**
 * The visible tracks, in order. Pinned tracks are on top instead of in their sections; the filter does not
 * apply to them. `active`: the tracks with events in the window; null: not known.
 */
export function arrange(
  tracks: readonly Track[],
  view: TrackView,
  active: ReadonlySet<number> | null = null,
): Arranged {
  const byId = new Map(tracks.map((track) => [track.id, track]));
  const pinned = view.pinned.flatMap((id) => byId.get(id) ?? []);
  const words = wordsOf(view.filter);
  const isShown = (track: Track): boolean =>
    !view.hidden.has(track.id) &&
    !view.pinned.includes(track.id) &&
    (!view.hidesEmpty || active === null || active.has(track.id)) &&
    matches(`${track.host} ${track.section} ${track.name}`, words);
  const sections = sectionsOf(tracks).flatMap((section): Section[] => {
    const shown = moved(section.tracks, view.moves).filter(isShown);
    return shown.length > 0 ? [{ ...section, tracks: shown }] : [];
  });
  const nShown = sections.reduce((n, section) => n + section.tracks.length, pinned.length);
  return { pinned, sections, nHidden: tracks.length - nShown };
}

export function rowsShown(track: Track, view: TrackView): number {
  const most = view.rows.get(track.id) ?? view.maxDepths;
  return most > 0 ? Math.min(track.nDepths, most) : track.nDepths;
}

/** One row more or fewer of a track, between one and all of them. */
export function changeRows(view: TrackView, track: Track, by: number): TrackView {
  const rows = new Map(view.rows);
  const n = Math.max(1, Math.min(rowsShown(track, view) + by, track.nDepths));
  rows.delete(track.id);
  if (n !== rowsShown(track, { ...view, rows })) rows.set(track.id, n);
  return { ...view, rows };
}

function toggled<T>(set: ReadonlySet<T>, item: T): Set<T> {
  const changed = new Set(set);
  if (!changed.delete(item)) changed.add(item);
  return changed;
}

export function fold(view: TrackView, key: string): TrackView {
  return { ...view, folded: toggled(view.folded, key) };
}

export function hide(view: TrackView, ids: readonly number[], isHidden: boolean): TrackView {
  const hidden = new Set(view.hidden);
  for (const id of ids) {
    if (isHidden) hidden.add(id);
    else hidden.delete(id);
  }
  return { ...view, hidden, pinned: isHidden ? view.pinned.filter((id) => !ids.includes(id)) : view.pinned };
}

export function pin(view: TrackView, id: number): TrackView {
  const pinned = view.pinned.includes(id)
    ? view.pinned.filter((other) => other !== id)
    : [...view.pinned, id];
  return { ...view, pinned };
}

/** Puts a track before another of its section (or of the pinned ones); −1: at the end. */
export function move(view: TrackView, id: number, before: number): TrackView {
  if (id === before) return view;
  if (view.pinned.includes(id)) {
    const otherPins = view.pinned.filter((other) => other !== id);
    const index = otherPins.indexOf(before);
    return {
      ...view,
      pinned: index < 0 ? [...otherPins, id] : [...otherPins.slice(0, index), id, ...otherPins.slice(index)],
    };
  }
  return { ...view, moves: [...view.moves.filter(([track]) => track !== id), [id, before]] };
}

const NAMES = ['pin', 'hide', 'fold', 'move', 'only', 'depths', 'rows', 'empty'] as const;
export type TrackParams = Partial<Record<(typeof NAMES)[number], string>>;

/** As parameters of the URL; undefined: the default. */
export function trackParams(view: TrackView): Record<(typeof NAMES)[number], string | undefined> {
  return {
    pin: view.pinned.join(',') || undefined,
    hide: [...view.hidden].sort((a, b) => a - b).join(',') || undefined,
    fold: [...view.folded].sort().join(',') || undefined,
    move: view.moves.map((pair) => pair.join(':')).join(',') || undefined,
    only: view.filter || undefined,
    depths: view.maxDepths > 0 ? String(view.maxDepths) : undefined,
    rows: [...view.rows].map((pair) => pair.join(':')).join(',') || undefined,
    empty: view.hidesEmpty ? 'hide' : undefined,
  };
}

function numbers(text: string | undefined): number[] {
  return (text ?? '').split(',').filter(Boolean).map(Number).filter(Number.isSafeInteger);
}

/** "5:-1,7:3" as pairs of whole numbers. */
function pairsOf(text: string | undefined): [number, number][] {
  return (text ?? '')
    .split(',')
    .map((pair) => pair.split(':').map(Number))
    .filter((pair): pair is [number, number] => pair.length === 2 && pair.every(Number.isSafeInteger));
}

/** Invalid parts are left out. */
export function parseTrackView(params: Readonly<TrackParams>): TrackView {
  return {
    pinned: numbers(params.pin),
    hidden: new Set(numbers(params.hide)),
    folded: new Set((params.fold ?? '').split(',').filter((key) => /^[st]\d+$/.test(key))),
    moves: pairsOf(params.move),
    filter: params.only ?? '',
    maxDepths: Math.max(0, numbers(params.depths)[0] ?? 0),
    rows: new Map(pairsOf(params.rows).filter(([, rows]) => rows > 0)),
    hidesEmpty: params.empty === 'hide',
  };
}

export function trackViewKey(view: TrackView): string {
  const params = trackParams(view);
  return NAMES.map((name) => params[name] ?? '').join('|');
}
