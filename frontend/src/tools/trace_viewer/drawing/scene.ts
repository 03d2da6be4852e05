/**
 * A window, a layout, a search and a selection become the scene that the stage draws: rows' positions, dimmed
 * boxes, areas, arrows, hits.
 */

import { areaOf, type Area } from '../../../canvas/areas';
import type { RowPlaces } from '../../../canvas/boxes';
import { format } from '../../../base/units';
import type { Hit, StepSpan } from '../../../canvas/overlay';
import type { EventRef, FlowNeighbour } from '../data/details_model';
import type { FlowArrow } from './arrows';
import { isCounter, PAD_PX, placeRows, rowTop, type Layout } from './layout';
import { litBoxes } from './lit';
import type { TraceWindow } from '../data/model';
import { depthOf, type Picked } from './picking';
import type { WindowHits } from '../data/query_model';

export interface Scene {
  readonly places: RowPlaces;
  readonly isDim: Uint8Array | null;
  readonly areas: readonly Area[];
  readonly hits: readonly Hit[];
  /** Starts and ends of stretches with hits on any track, for the ruler. */
  readonly stretches: Float64Array;
  readonly stepsPs: Float64Array;
  readonly stepRow: readonly StepSpan[];
}

function dimOf(isLit: Uint8Array | null): Uint8Array | null {
  return isLit && isLit.map((lit) => 1 - lit);
}

const HIT_PX = 4;

/** Marks below the tracks: a run of lit boxes with less than a pixel between them is one. */
function hitsOf(window: TraceWindow, layout: Layout, isLit: Uint8Array | null): Hit[] {
  if (!isLit) return [];
  const byTrack = new Map<number, { startPs: number; endPs: number }[]>();
  const { boxes, rowTrack } = window;
  for (let row = 0; row < rowTrack.length; row++) {
    const track = rowTrack[row] as number;
    const spans = byTrack.get(track) ?? [];
    for (let i = boxes.rowFirst[row] as number; i < (boxes.rowFirst[row + 1] as number); i++)
      if (isLit[i]) {
        const startPs = boxes.startPs[i] as number;
        spans.push({ startPs, endPs: startPs + (boxes.durationPs[i] as number) });
      }
    if (spans.length > 0) byTrack.set(track, spans);
  }
  return [...byTrack]
    .flatMap(([track, spans]): Hit[] => {
      const place = layout.placeOfTrack.get(track);
      if (!place) return [];
      const y = place.y + place.height - HIT_PX - 1;
      return joined(spans, window.psPerPx).map((span) => ({ ...span, y, height: HIT_PX }));
    })
    .sort((a, b) => a.y - b.y || a.startPs - b.startPs);
}

function joined(
  spans: { startPs: number; endPs: number }[],
  gapPs: number,
): { startPs: number; endPs: number }[] {
  const runs: { startPs: number; endPs: number }[] = [];
  for (const { startPs, endPs } of spans.sort((a, b) => a.startPs - b.startPs)) {
    const last = runs.at(-1);
    if (last && startPs <= last.endPs + gapPs) last.endPs = Math.max(last.endPs, endPs);
    else runs.push({ startPs, endPs });
  }
  return runs;
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

/** Steps of the first host that has any, in time order; those of several hosts coincide. */
function stepRowOf({ steps }: TraceWindow): StepSpan[] {
  const host = steps[0]?.host;
  return steps
    .filter((step) => step.host === host)
    .map(({ name, number, startPs, durationPs }) => ({
      startPs,
      durationPs,
      label: number === null ? name : String(number),
      note: format(durationPs, 'ps'),
    }))
    .sort((a, b) => a.startPs - b.startPs);
}

const NO_STRETCHES = new Float64Array(0);

export function sceneOf(window: TraceWindow, layout: Layout, found: WindowHits | null): Scene {
  const isLit = found && litBoxes(window, found);
  return {
    places: placeRows(window, layout),
    isDim: dimOf(isLit),
    areas: areasOf(window, layout),
    hits: hitsOf(window, layout, isLit),
    stretches: found?.stretches ?? NO_STRETCHES,
    stepsPs: stepsOf(window),
    stepRow: stepRowOf(window),
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
