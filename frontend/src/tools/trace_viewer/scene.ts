/**
 * A window, a layout, a search and a selection become the scene that the stage draws: rows' positions, dimmed
 * boxes, areas, arrows, hits.
 */

import { areaOf, type Area } from '../../canvas/areas';
import type { RowPlaces } from '../../canvas/boxes';
import type { Hit } from '../../canvas/overlay';
import type { EventRef, FlowNeighbour } from './details_model';
import type { FlowArrow } from './flows';
import { isCounter, PAD_PX, placeRows, rowTop, type Layout } from './layout';
import type { TraceWindow } from './model';
import { depthOf, type Picked } from './picking';

/** The part of a search that the drawing needs. */
export interface Highlight {
  /** In lower case. */
  readonly text: string;
  /** Events that match by more than their names. */
  readonly events: ReadonlySet<number>;
  readonly matches: readonly EventRef[];
}

export interface Scene {
  readonly places: RowPlaces;
  readonly isDim: Uint8Array | null;
  readonly areas: readonly Area[];
  readonly hits: readonly Hit[];
  readonly stepsPs: Float64Array;
}

function dimOf({ boxes }: TraceWindow, highlight: Highlight | null): Uint8Array | null {
  if (!highlight) return null;
  const isNameDim = Uint8Array.from(boxes.names, (name) =>
    Number(!name.toLowerCase().includes(highlight.text)),
  );
  const isDim = new Uint8Array(boxes.n);
  for (let i = 0; i < boxes.n; i++)
    isDim[i] =
      (isNameDim[boxes.nameId[i] as number] as number) && !highlight.events.has(boxes.eventId[i] as number)
        ? 1
        : 0;
  return isDim;
}

const HIT_PX = 4;

function hitsOf(layout: Layout, highlight: Highlight | null): Hit[] {
  return (highlight?.matches ?? [])
    .flatMap(({ track, startPs }): Hit[] => {
      const place = layout.placeOfTrack.get(track);
      return place ? [{ timePs: startPs, y: place.y + place.height - HIT_PX - 1, height: HIT_PX }] : [];
    })
    .sort((a, b) => a.y - b.y || a.timePs - b.timePs);
}

function areasOf(window: TraceWindow, layout: Layout): Area[] {
  return [...layout.placeOfTrack.values()].flatMap((place): Area[] => {
    const series = window.counters.get(place.track.id);
    return series && isCounter(place.track)
      ? [
          areaOf(
            series,
            { y: place.y + PAD_PX, height: place.boxHeight },
            window,
            place.track.minValue,
            place.track.maxValue,
          ),
        ]
      : [];
  });
}

/** Boundaries of steps, without duplicates: those of several hosts or cores coincide. */
function stepsOf({ steps }: TraceWindow): Float64Array {
  return Float64Array.from(new Set(steps.map(({ startPs }) => startPs)));
}

export function sceneOf(window: TraceWindow, layout: Layout, highlight: Highlight | null): Scene {
  return {
    places: placeRows(window, layout),
    isDim: dimOf(window, highlight),
    areas: areasOf(window, layout),
    hits: hitsOf(layout, highlight),
    stepsPs: stepsOf(window),
  };
}

/**
 * The middle of an event's box; if the window does not show the event, its track's first row; null: its track
 * is not shown.
 */
function middleOf(
  event: number,
  track: number,
  timePs: number,
  window: TraceWindow,
  layout: Layout,
): number | null {
  const place = layout.placeOfTrack.get(track);
  if (!place) return null;
  const depth = Math.min(depthOf(window, event, track, timePs) ?? 0, place.nRows - 1);
  return rowTop(place, depth) + place.boxHeight / 2;
}

export function arrowsOf(
  window: TraceWindow,
  layout: Layout,
  selected: Picked | null,
  flows: readonly FlowNeighbour[],
): FlowArrow[] {
  const arrows: FlowArrow[] = [];
  const nameOf = (event: number): string =>
    [selected, ...flows].find((each) => each?.event === event)?.name ?? '';
  const add = (
    from: readonly [number, number, number],
    to: readonly [number, number, number],
    kind: string,
    isOwn: boolean,
  ): void => {
    const fromY = middleOf(...from, window, layout);
    const toY = middleOf(...to, window, layout);
    if (fromY !== null && toY !== null)
      arrows.push({
        fromPs: from[2],
        fromY,
        toPs: to[2],
        toY,
        isOwn,
        kind,
        from: { event: from[0], track: from[1], name: nameOf(from[0]) },
        to: { event: to[0], track: to[1], name: nameOf(to[0]) },
      });
  };
  for (const flow of window.flows ?? [])
    add(
      [flow.fromEvent, flow.fromTrack, flow.fromPs],
      [flow.toEvent, flow.toTrack, flow.toPs],
      flow.kind,
      false,
    );
  for (const flow of selected ? flows : []) {
    const me = selected as Picked;
    // An arrow starts at the end of the cause, unless the effect has begun by then.
    const leave = (cause: EventRef, effect: EventRef): number =>
      Math.min(cause.startPs + cause.durationPs, Math.max(cause.startPs, effect.startPs));
    if (flow.direction === 'in')
      add([flow.event, flow.track, leave(flow, me)], [me.event, me.track, me.startPs], flow.kind, true);
    else add([me.event, me.track, leave(me, flow)], [flow.event, flow.track, flow.startPs], flow.kind, true);
  }
  return arrows;
}
