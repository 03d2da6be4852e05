/** The way along arrows, from an event to its cause or effect, and which kinds of arrows are drawn. */

import { readNumber, readTable } from '../../../api/declared';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import type { Payload } from '../../../api/types';
import {
  decodeDependencies,
  decodeDetails,
  eventOf,
  type EventRef,
  type FlowNeighbour,
} from '../data/details_model';
import type { Timeline } from './timeline';

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
