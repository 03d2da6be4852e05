/**
 * The events that are selected together, one click each: their ids, the text of the URL, and the request for
 * their totals.
 */

import { signal } from '@preact/signals';
import { readTable } from '../../../api/declared';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import type { Payload } from '../../../api/types';
import { eventOf } from '../data/details_model';
import { pickedEvent, type Picked } from '../drawing/picking';

/** The server totals at most this many by id; a box holds more. */
export const MOST_EVENTS = 200;

const isIn = (events: readonly Picked[], { event }: Picked): boolean =>
  events.some((each) => each.event === event);

export interface Toggled {
  readonly events: readonly Picked[];
  /** The event whose details are shown; null: none. */
  readonly selected: Picked | null;
  /** There was no room for it. */
  readonly isFull: boolean;
}

/**
 * Adds an event, or removes it. The first one added joins the event that is selected already, as a second
 * click in a list does.
 */
export function toggled(events: readonly Picked[], selected: Picked | null, picked: Picked): Toggled {
  if (isIn(events, picked)) {
    const rest = events.filter(({ event }) => event !== picked.event);
    const isGone = selected?.event === picked.event;
    return { events: rest, selected: isGone ? (rest.at(-1) ?? null) : selected, isFull: false };
  }
  if (events.length >= MOST_EVENTS) return { events, selected, isFull: true };
  const before = events.length === 0 && selected && selected.event !== picked.event ? [selected] : events;
  return { events: [...before, picked], selected: picked, isFull: false };
}

/** "ID.ID.ID"; empty: none. */
export function severalText(events: readonly Picked[]): string {
  return events.map(({ event }) => String(event)).join('.');
}

/** The ids of a URL's text, each once; other text is left out. */
export function parseSeveral(text: string | undefined): number[] {
  const ids = (text ?? '')
    .split('.')
    .filter((part) => /^\d{1,16}$/.test(part))
    .map(Number)
    .filter(Number.isSafeInteger);
  return [...new Set(ids)].slice(0, MOST_EVENTS);
}

/** The request for their totals, their slices or their places. */
export function severalParams(ids: readonly number[]): { events: string } {
  return { events: ids.join(',') };
}

/** The answer about places, in the order of the ids. */
export function decodePlaces(payload: Payload, ids: readonly number[]): Picked[] {
  const rows = readTable(payload, TRACE_VIEWER.places.tables.places).all();
  const byId = new Map(rows.map((row) => [row.event, pickedEvent(eventOf(row), row.depth ?? 0)]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** From the first start to the last end, in ps. */
export function extentOf(events: readonly Picked[]): { startPs: number; endPs: number } {
  return {
    startPs: Math.min(...events.map(({ startPs }) => startPs)),
    endPs: Math.max(...events.map(({ startPs, durationPs }) => startPs + durationPs)),
  };
}

export class Several {
  readonly events = signal<readonly Picked[]>([]);
  /** The last click found no room. */
  readonly isFull = signal(false);

  set(events: readonly Picked[]): void {
    this.isFull.value = false;
    if (severalText(events) !== severalText(this.events.value)) this.events.value = events;
  }

  /** False: there were none. */
  clear(): boolean {
    const hadAny = this.events.value.length > 0;
    this.set([]);
    return hadAny;
  }

  /** Returns the event that is selected from now on. */
  toggle(picked: Picked, selected: Picked | null): Picked | null {
    const next = toggled(this.events.value, selected, picked);
    this.events.value = next.events;
    this.isFull.value = next.isFull;
    return next.selected;
  }

  /** Other hosts are shown: events of the tracks that are gone are no longer selected. */
  keepOn(tracks: readonly { readonly id: number }[]): void {
    const ids = new Set(tracks.map(({ id }) => id));
    const kept = this.events.value.filter(({ track }) => ids.has(track));
    if (kept.length < this.events.value.length) this.set(kept);
  }

  shift(byPs: number): void {
    if (this.events.value.length > 0)
      this.events.value = this.events.value.map((each) => ({ ...each, startPs: each.startPs + byPs }));
  }
}
