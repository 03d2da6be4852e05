/** The server's answers about one event, and about the whole trace's utilization, as the page shows them. */

import { readNumber, readTable } from '../../../api/declared';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import type { Payload } from '../../../api/types';

/** An event by its times, whatever answer it comes from; depth null: not known. */
export interface EventRef {
  readonly event: number;
  readonly track: number;
  readonly name: string;
  readonly startPs: number;
  readonly durationPs: number;
}

export interface FlowNeighbour extends EventRef {
  readonly direction: 'in' | 'out';
  readonly kind: string;
}

/** All events with the selected one's name. */
export interface SameName {
  readonly n: number;
  readonly totalPs: number;
  readonly averagePs: number;
  readonly minPs: number;
  readonly maxPs: number;
  readonly histogram: readonly { readonly fromPs: number; readonly toPs: number; readonly n: number }[];
}

interface DetailLink {
  readonly text: string;
  readonly tool: string;
  readonly params: Readonly<Record<string, string>>;
}

interface Explanation {
  readonly kind: string;
  readonly text: string;
  /** An address, or the name of the project. */
  readonly source: string;
}

interface Argument {
  readonly name: string;
  readonly value: string;
  /** The value scaled, with its unit; empty: as it is. */
  readonly shown: string;
}

export interface EventDetails extends EventRef {
  readonly depth: number;
  readonly selfTimePs: number | null;
  readonly step: string | null;
  /** What events of this name are, if the glossary knows. */
  readonly explanation: Explanation | null;
  /** Other texts about the event, as the server names them. */
  readonly about: readonly (readonly [string, string])[];
  readonly arguments: readonly Argument[];
  /** The innermost first. */
  readonly ancestors: readonly EventRef[];
  readonly flows: readonly FlowNeighbour[];
  readonly sameName: SameName | null;
  readonly links: readonly DetailLink[];
  /** The whole answer, for what other pages draw, too. */
  readonly payload: Payload;
}

const EVENT = TRACE_VIEWER.event;

interface EventRow {
  readonly event: number | null;
  readonly track?: number | null;
  readonly name: string;
  readonly start_ps: number | null;
  readonly duration_ps: number | null;
}

/** `track`: used if the table has none. */
export function eventOf(row: EventRow, track = -1): EventRef {
  return {
    event: row.event ?? -1,
    track: row.track ?? track,
    name: row.name || '(no name)',
    startPs: row.start_ps ?? 0,
    durationPs: row.duration_ps ?? 0,
  };
}

function pairs(payload: Payload): [string, string][] {
  return readTable(payload, EVENT.tables.about)
    .all()
    .map(({ name, value }) => [name, value]);
}

function decodeSameName(payload: Payload): SameName | null {
  const { n_same_name, same_total_ps, same_avg_ps, same_min_ps, same_max_ps } = EVENT.scalars;
  const n = readNumber(payload, n_same_name);
  if (n === null) return null;
  const histogram = readTable(payload, EVENT.tables.histogram)
    .all()
    .map((bin) => ({ fromPs: bin.from_ps ?? 0, toPs: bin.to_ps ?? 0, n: bin.n ?? 0 }));
  return {
    n,
    totalPs: readNumber(payload, same_total_ps) ?? 0,
    averagePs: readNumber(payload, same_avg_ps) ?? 0,
    minPs: readNumber(payload, same_min_ps) ?? 0,
    maxPs: readNumber(payload, same_max_ps) ?? 0,
    histogram,
  };
}

function textRecord(json: string): Record<string, string> {
  try {
    const parsed: unknown = JSON.parse(json);
    if (typeof parsed !== 'object' || parsed === null) return {};
    return Object.fromEntries(Object.entries(parsed).map(([name, value]) => [name, String(value)]));
  } catch {
    return {};
  }
}

function decodeLinks(payload: Payload): DetailLink[] {
  return readTable(payload, EVENT.tables.links)
    .all()
    .map(({ text, tool, params }) => ({ text, tool, params: textRecord(params) }));
}

/** The operations that the event's operation reads, and those that read it. */
export interface Dependencies {
  readonly arrows: readonly FlowNeighbour[];
  /** How many are left out; empty: none. */
  readonly note: string;
}

export function decodeDependencies(payload: Payload): Dependencies {
  const rows = readTable(payload, TRACE_VIEWER.dependencies.tables.dependencies);
  const arrows = rows.all().map((row): FlowNeighbour => ({
    ...eventOf(row),
    direction: row.direction === 'in' ? 'in' : 'out',
    kind: row.kind,
  }));
  return { arrows, note: rows.note };
}

function decodeFlowNeighbours(payload: Payload): FlowNeighbour[] {
  return readTable(payload, EVENT.tables.flows)
    .all()
    .map((row) => ({ ...eventOf(row), direction: row.direction === 'in' ? 'in' : 'out', kind: row.kind }));
}

/** Rows that the panel shows elsewhere. */
const ELSEWHERE = new Set([
  'name',
  'step',
  'track',
  'section',
  'host',
  'kind',
  'explanation',
  'explanation_source',
]);

function explanationOf(word: (name: string) => string | undefined): Explanation | null {
  const text = word('explanation');
  return text ? { kind: word('kind') ?? '', text, source: word('explanation_source') ?? '' } : null;
}

export function decodeDetails(payload: Payload): EventDetails {
  const { event, track, depth, start_ps, duration_ps, self_time_ps } = EVENT.scalars;
  const about = pairs(payload);
  const word = (name: string): string | undefined => about.find(([key]) => key === name)?.[1];
  const trackId = readNumber(payload, track) ?? -1;
  return {
    event: readNumber(payload, event) ?? -1,
    track: trackId,
    depth: readNumber(payload, depth) ?? 0,
    startPs: readNumber(payload, start_ps) ?? 0,
    durationPs: readNumber(payload, duration_ps) ?? 0,
    selfTimePs: readNumber(payload, self_time_ps),
    step: word('step') ?? null,
    explanation: explanationOf(word),
    name: word('name') ?? '(no name)',
    about: about.filter(([key, value]) => !ELSEWHERE.has(key) && value !== word('name')),
    arguments: readTable(payload, EVENT.tables.arguments).all(),
    ancestors: readTable(payload, EVENT.tables.ancestors)
      .all()
      .map((row) => eventOf(row, trackId)),
    flows: decodeFlowNeighbours(payload),
    sameName: decodeSameName(payload),
    links: decodeLinks(payload),
    payload,
  };
}

/** Utilization of each host and section over the whole trace, a share per pixel. */
export interface Density {
  readonly nPixels: number;
  readonly parts: readonly { readonly host: string; readonly section: string; readonly busy: Float32Array }[];
}

export function decodeDensity(payload: Payload, nPixels: number): Density {
  const rows = readTable(payload, TRACE_VIEWER.minimap.tables.density);
  const host = rows.text('host');
  const section = rows.text('section');
  const pixels = rows.numbers('pixel');
  const busy = rows.numbers('busy_fraction');
  const parts = new Map<string, { host: string; section: string; busy: Float32Array }>();
  for (let row = 0; row < rows.length; row++) {
    const key = `${host(row)}\n${section(row)}`;
    const part = parts.get(key) ?? {
      host: host(row),
      section: section(row),
      busy: new Float32Array(nPixels),
    };
    parts.set(key, part);
    const pixel = pixels[row] ?? -1;
    if (pixel >= 0 && pixel < nPixels) part.busy[pixel] = busy[row] ?? 0;
  }
  return { nPixels, parts: [...parts.values()] };
}
