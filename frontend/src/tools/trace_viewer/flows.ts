/**
 * Arrows between events: which kinds are drawn, which one is under the pointer, and the way along them from an
 * event to its cause or effect.
 */

import { readNumber, readTable } from '../../api/declared';
import { TRACE_VIEWER } from '../../api/tables/trace_viewer';
import type { Payload } from '../../api/types';
import { toScreen, type Arrow } from '../../canvas/overlay';
import type { Frame } from '../../canvas/renderer';
import {
  decodeDependencies,
  decodeDetails,
  eventOf,
  type EventRef,
  type FlowNeighbour,
} from './details_model';
import type { Timeline } from './timeline';

/** One end of an arrow; the name is empty where the picture does not show the event. */
export interface FlowEnd {
  readonly event: number;
  readonly track: number;
  readonly name: string;
}

export interface FlowArrow extends Arrow {
  readonly kind: string;
  readonly from: FlowEnd;
  readonly to: FlowEnd;
}

const REACH_PX = 4;
const N_PIECES = 24;

/** The distance of a point from the line between two others, squared. */
function apart(x: number, y: number, a: readonly [number, number], b: readonly [number, number]): number {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = dx * dx + dy * dy;
  const along = length > 0 ? Math.max(0, Math.min(1, ((x - a[0]) * dx + (y - a[1]) * dy) / length)) : 0;
  return (x - a[0] - along * dx) ** 2 + (y - a[1] - along * dy) ** 2;
}

/** The arrow under a point of the stage, drawn as `drawArrows` draws it; the selected event's first. */
export function arrowAt(arrows: readonly FlowArrow[], frame: Frame, x: number, y: number): FlowArrow | null {
  const perPs = frame.widthPx / (frame.endPs - frame.startPs);
  let best: FlowArrow | null = null;
  let least = REACH_PX ** 2;
  for (const arrow of arrows) {
    const [x1, x2] = [(arrow.fromPs - frame.startPs) * perPs, (arrow.toPs - frame.startPs) * perPs];
    const [y1, y2] = [toScreen(arrow.fromY, frame), toScreen(arrow.toY, frame)];
    const bend = Math.min(60, 14 + Math.abs(x2 - x1) / 2);
    if (x < Math.min(x1, x2 - bend) - REACH_PX || x > Math.max(x2, x1 + bend) + REACH_PX) continue;
    if (y < Math.min(y1, y2) - REACH_PX || y > Math.max(y1, y2) + REACH_PX) continue;
    let before: readonly [number, number] = [x1, y1];
    for (let piece = 1; piece <= N_PIECES; piece++) {
      const t = piece / N_PIECES;
      const [a, b, c, d] = [(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t ** 3];
      const next = [
        a * x1 + b * (x1 + bend) + c * (x2 - bend) + d * x2,
        (a + b) * y1 + (c + d) * y2,
      ] as const;
      const distance = apart(x, y, before, next) - (arrow.isOwn ? 1e-3 : 0);
      if (distance < least) [best, least] = [arrow, distance];
      before = next;
    }
  }
  return best;
}

/** From the selected event an arrow leads to its other end; from elsewhere to its effect. */
export function otherEnd(arrow: FlowArrow, selected: number | null): FlowEnd {
  return selected === arrow.to.event ? arrow.from : arrow.to;
}

/** Goes to an event of which only the id is known. */
export async function goToEvent(timeline: Timeline, event: number): Promise<void> {
  const details = decodeDetails(await timeline.ask('event', { event: String(event) }));
  timeline.follow(details);
}

export interface ChainLink extends EventRef {
  readonly side: 'cause' | 'event' | 'effect';
  readonly kind: string;
  readonly distance: number;
  readonly gapPs: number | null;
}

export interface Chain {
  /** In time order. */
  readonly links: readonly ChainLink[];
  readonly isCut: boolean;
}

const { tables: TABLES, scalars: SCALARS } = TRACE_VIEWER.chain;
const ENCLOSES = 'encloses';

export function decodeChain(payload: Payload): Chain {
  const links = readTable(payload, TABLES.chain)
    .all()
    .map((row): ChainLink => ({
      ...eventOf(row),
      side: row.side === 'cause' || row.side === 'effect' ? row.side : 'event',
      kind: row.kind,
      distance: row.distance ?? 0,
      gapPs: Number.isFinite(row.gap_ps ?? Number.NaN) ? row.gap_ps : null,
    }));
  return { links, isCut: readNumber(payload, SCALARS.is_cut) === 1 };
}

/** An enclosing event is neither cause nor effect by itself: the nearest end of an arrow is. */
export function nearestEnd(
  chain: Chain,
  side: 'cause' | 'effect',
  hidden: ReadonlySet<string>,
): ChainLink | null {
  const ends = chain.links.filter(
    (link) => link.side === side && link.kind !== ENCLOSES && !hidden.has(link.kind),
  );
  return ends.sort((a, b) => a.distance - b.distance || a.startPs - b.startPs)[0] ?? null;
}

/** Of several arrows of the event itself: the latest cause, the first effect. */
export function nextAlong(
  flows: readonly FlowNeighbour[],
  side: 'cause' | 'effect',
  hidden: ReadonlySet<string>,
): FlowNeighbour | null {
  const own = flows.filter(
    ({ direction, kind }) => direction === (side === 'cause' ? 'in' : 'out') && !hidden.has(kind),
  );
  const ordered = own.sort((a, b) => a.startPs - b.startPs);
  return (side === 'cause' ? ordered.at(-1) : ordered[0]) ?? null;
}

/** What an operation reads and what reads it. */
async function operandsOf(timeline: Timeline, event: number): Promise<readonly FlowNeighbour[]> {
  return decodeDependencies(await timeline.ask('dependencies', { event: String(event) })).arrows;
}

async function goAlong(timeline: Timeline, event: number, side: 'cause' | 'effect'): Promise<void> {
  const hidden = timeline.hiddenKinds.value;
  const details = decodeDetails(await timeline.ask('event', { event: String(event) }));
  const next =
    nextAlong(details.flows, side, hidden) ??
    nearestEnd(decodeChain(await timeline.ask('chain', { event: String(event) })), side, hidden) ??
    nextAlong(await operandsOf(timeline, event), side, hidden);
  if (next && timeline.selected.value?.event === event) timeline.follow(next);
}

/**
 * From the selected event along its arrow, else along the nearest one of the events around or within it; false:
 * nothing is selected.
 */
export function followFlow(timeline: Timeline, side: 'cause' | 'effect'): boolean {
  const event = timeline.selected.value?.event;
  if (event === undefined) return false;
  void goAlong(timeline, event, side).catch((error: unknown) => {
    timeline.loader.refusal.value = error;
  });
  return true;
}

const MOST_KINDS = 64;
const MOST_KIND = 80;

/** Kinds that are not drawn, as a link has them: "PjRt,thread%20pool". */
export function kindsText(hidden: ReadonlySet<string>): string {
  return [...hidden].sort().map(encodeURIComponent).join(',');
}

export function parseKinds(text: string | undefined): ReadonlySet<string> {
  const names = (text ?? '').slice(0, 4000).split(',').filter(Boolean).slice(0, MOST_KINDS);
  return new Set(
    names.flatMap((name) => {
      try {
        return [decodeURIComponent(name).slice(0, MOST_KIND)];
      } catch {
        return [];
      }
    }),
  );
}
