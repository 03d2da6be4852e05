/** The server's answers about one event, a search and a stretch of time, as the page shows them. */

import { cellAt, findColumn, scalarNumber } from '../../api/table';
import type { Payload, Table } from '../../api/types';
import { reader } from './model';

/** An event by its times, wherever it was told of; depth null: not known. */
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

/** All events of the selected one's name. */
export interface SameName {
  readonly n: number;
  readonly totalPs: number;
  readonly averagePs: number;
  readonly minPs: number;
  readonly maxPs: number;
  readonly histogram: readonly { readonly fromPs: number; readonly toPs: number; readonly n: number }[];
}

export interface DetailLink {
  readonly text: string;
  readonly tool: string;
  readonly params: Readonly<Record<string, string>>;
}

export interface EventDetails extends EventRef {
  readonly depth: number;
  readonly selfTimePs: number | null;
  readonly step: string | null;
  /** Other words about the event, as the server names them. */
  readonly about: readonly (readonly [string, string])[];
  readonly arguments: readonly (readonly [string, string])[];
  /** The innermost first. */
  readonly ancestors: readonly EventRef[];
  readonly flows: readonly FlowNeighbour[];
  readonly sameName: SameName | null;
  readonly links: readonly DetailLink[];
}

function pairs(table: Table | undefined): [string, string][] {
  const name = findColumn(table, 'name');
  const value = findColumn(table, 'value');
  if (!table || !name || !value) return [];
  return Array.from({ length: table.n_rows }, (_, row) => [
    String(cellAt(name, row) ?? ''),
    String(cellAt(value, row) ?? '—'),
  ]);
}

export function decodeEvents(table: Table | undefined, track = -1): EventRef[] {
  const { n, number, text } = reader(table);
  return Array.from({ length: n }, (_, row) => ({
    event: number('event', row, -1),
    track: number('track', row, track),
    name: text('name', row) || '(no name)',
    startPs: number('start_ps', row),
    durationPs: number('duration_ps', row),
  }));
}

function decodeSameName(payload: Payload): SameName | null {
  const n = scalarNumber(payload, 'n_same_name');
  if (n === null) return null;
  const ps = (name: string): number => scalarNumber(payload, `same_${name}_ps`) ?? 0;
  const bins = reader(payload.tables.histogram);
  const histogram = Array.from({ length: bins.n }, (_, row) => ({
    fromPs: bins.number('from_ps', row),
    toPs: bins.number('to_ps', row),
    n: bins.number('n', row),
  }));
  return { n, totalPs: ps('total'), averagePs: ps('avg'), minPs: ps('min'), maxPs: ps('max'), histogram };
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

function decodeLinks(table: Table | undefined): DetailLink[] {
  const { n, text } = reader(table);
  return Array.from({ length: n }, (_, row) => ({
    text: text('text', row),
    tool: text('tool', row),
    params: textRecord(text('params', row)),
  }));
}

function decodeFlowNeighbours(table: Table | undefined): FlowNeighbour[] {
  const { text } = reader(table);
  return decodeEvents(table).map((event, row) => ({
    ...event,
    direction: text('direction', row) === 'in' ? 'in' : 'out',
    kind: text('kind', row),
  }));
}

/** Rows that the panel shows elsewhere. */
const ELSEWHERE = new Set(['name', 'step', 'step_name', 'track', 'section', 'host']);

export function decodeDetails(payload: Payload): EventDetails {
  const { about: aboutTable, arguments: argumentTable, ancestors, flows, links } = payload.tables;
  const scalar = (name: string): number | null => scalarNumber(payload, name);
  const about = pairs(aboutTable);
  const word = (name: string): string | undefined => about.find(([key]) => key === name)?.[1];
  const step = word('step') ?? word('step_name') ?? scalar('step');
  const track = scalar('track') ?? -1;
  return {
    event: scalar('event') ?? -1,
    track,
    depth: scalar('depth') ?? 0,
    startPs: scalar('start_ps') ?? 0,
    durationPs: scalar('duration_ps') ?? 0,
    selfTimePs: scalar('self_time_ps'),
    step: step === null || step === undefined ? null : String(step),
    name: word('name') ?? '(no name)',
    about: about.filter(([key, value]) => !ELSEWHERE.has(key) && value !== word('name')),
    arguments: pairs(argumentTable),
    ancestors: decodeEvents(ancestors, track),
    flows: decodeFlowNeighbours(flows),
    sameName: decodeSameName(payload),
    links: decodeLinks(links),
  };
}

export interface Found {
  readonly nMatches: number;
  readonly nNames: number;
  /** In time order; the first of many. */
  readonly matches: readonly EventRef[];
  readonly names: Table | null;
}

export function decodeFound(payload: Payload): Found {
  const matches = decodeEvents(payload.tables.matches);
  return {
    nMatches: scalarNumber(payload, 'n_matches') ?? matches.length,
    nNames: scalarNumber(payload, 'n_names') ?? payload.tables.names?.n_rows ?? 0,
    matches,
    names: payload.tables.names ?? null,
  };
}

export interface Totals {
  readonly nEvents: number;
  readonly rangePs: number;
  readonly table: Table | null;
}

export function decodeTotals(payload: Payload): Totals {
  return {
    nEvents: scalarNumber(payload, 'n_events') ?? 0,
    rangePs: scalarNumber(payload, 'range_ps') ?? 0,
    table: payload.tables.totals ?? null,
  };
}

/** How busy each host and section is over the whole trace, a share for each pixel. */
export interface Density {
  readonly nPixels: number;
  readonly parts: readonly { readonly host: string; readonly section: string; readonly busy: Float32Array }[];
}

export function decodeDensity(payload: Payload, nPixels: number): Density {
  const { n, number, text } = reader(payload.tables.density);
  const parts = new Map<string, { host: string; section: string; busy: Float32Array }>();
  for (let row = 0; row < n; row++) {
    const [host, section, pixel] = [text('host', row), text('section', row), number('pixel', row)];
    const key = `${host}\n${section}`;
    const part = parts.get(key) ?? { host, section, busy: new Float32Array(nPixels) };
    parts.set(key, part);
    if (pixel >= 0 && pixel < nPixels) part.busy[pixel] = number('busy_fraction', row);
  }
  return { nPixels, parts: [...parts.values()] };
}
