/**
 * The server's window of the trace as the timeline uses it: tracks, boxes in rows, counters, steps, flows.
 */

import { readIfAny, readNumber, readTable, type Rows as TableRows } from '../../../api/declared';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import type { Diagnostic, Payload } from '../../../api/types';
import type { Series } from '../../../canvas/areas';
import type { Boxes } from '../../../canvas/boxes';
import { styleOf } from './names';

const { tables: TABLES, scalars: SCALARS } = TRACE_VIEWER.page;

/** Free room beside the events where the page opens on a part of the trace. */
const FOCUS_MARGIN = 0.02;

export interface Track {
  readonly id: number;
  readonly host: string;
  readonly section: string;
  readonly name: string;
  readonly kind: string;
  readonly nEvents: number;
  readonly nDepths: number;
  readonly isDerived: boolean;
  /** For a counter, over the whole trace; 0: not known. */
  readonly minValue: number;
  readonly maxValue: number;
  /** For a counter: `bytes`, `bytes_per_s`, or as written in the trace; empty: not known. */
  readonly unit: string;
}

/** The request: null bounds mean the whole trace, null tracks mean all. */
export interface WindowRequest {
  readonly startPs: number | null;
  readonly endPs: number | null;
  readonly widthPx: number;
  readonly trackIds: readonly number[] | null;
  readonly hasFlows: boolean;
}

interface StepMark {
  readonly host: string;
  readonly name: string;
  /** null: it has none. */
  readonly number: number | null;
  readonly startPs: number;
  readonly durationPs: number;
}

/** From the end of an event to the start of the one that it caused. */
interface Flow {
  readonly kind: string;
  readonly fromEvent: number;
  readonly fromTrack: number;
  readonly fromPs: number;
  readonly toEvent: number;
  readonly toTrack: number;
  readonly toPs: number;
}

export interface TraceWindow {
  /** The request that it answers. */
  readonly request: WindowRequest;
  readonly startPs: number;
  readonly endPs: number;
  readonly psPerPx: number;
  readonly trackIds: ReadonlySet<number> | null;
  readonly boxes: Boxes;
  /** Ids of tracks, which beyond 128 hosts do not fit 32 bits. */
  readonly rowTrack: Float64Array;
  readonly rowDepth: Int32Array;
  readonly counters: ReadonlyMap<number, Series>;
  readonly steps: readonly StepMark[];
  /** null: they were not requested. */
  readonly flows: readonly Flow[] | null;
  readonly nFlows: number;
  readonly nEvents: number;
  /** Nothing is merged: zooming in needs no other answer. */
  readonly isExact: boolean;
}

export interface TraceFacts {
  readonly durationPs: number;
  readonly nEvents: number;
  /** Of the whole trace. */
  readonly nSteps: number;
  /** The part that holds the events, where a few are far from all others; null: the whole trace. */
  readonly focus: { readonly startPs: number; readonly endPs: number } | null;
  readonly tracks: readonly Track[];
  /** The offset added to each host's own times in this view of several. */
  readonly offsetPs: ReadonlyMap<string, number>;
  readonly diagnostics: readonly Diagnostic[];
}

export function requestParams(request: WindowRequest): Record<string, string> {
  const params: Record<string, string> = { width_px: String(Math.round(request.widthPx)) };
  if (request.startPs !== null) params.start_ps = String(Math.floor(request.startPs));
  if (request.endPs !== null) params.end_ps = String(Math.ceil(request.endPs));
  if (request.trackIds) params.tracks = request.trackIds.join(',');
  if (request.hasFlows) params.flows = '1';
  return params;
}

/** All numbers of a column; `unknown` replaces unknown ones. */
function numbersOf(values: ArrayLike<number | null>, unknown: number): Float64Array {
  if (values instanceof Float64Array) return values;
  // The browser's own copy: a loop over arrays of several kinds takes ten times as long.
  if (values instanceof Uint8Array) return new Float64Array(values);
  const numbers = new Float64Array(values.length).fill(unknown);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value !== null && value !== undefined && value === value) numbers[i] = value;
  }
  return numbers;
}

function decodeTracks(payload: Payload): Track[] {
  return readTable(payload, TABLES.tracks)
    .all()
    .map((row, index) => ({
      id: row.track ?? index,
      host: row.host,
      section: row.section,
      name: row.name,
      kind: row.kind,
      nEvents: row.n_events ?? 0,
      nDepths: Math.max(1, row.n_depths ?? 1),
      isDerived: row.is_derived,
      minValue: row.min_value ?? 0,
      maxValue: row.max_value ?? 0,
      unit: row.unit,
    }));
}

/** Beyond 2^53 numbers are rounded; the trace's end must not be rounded down to before the last event. */
function roundedUp(durationPs: number): number {
  return durationPs > Number.MAX_SAFE_INTEGER ? durationPs * (1 + Number.EPSILON) : durationPs;
}

function decodeFocus(payload: Payload): TraceFacts['focus'] {
  const startPs = readNumber(payload, SCALARS.focus_start_ps);
  const endPs = readNumber(payload, SCALARS.focus_end_ps);
  if (startPs === null || endPs === null) return null;
  const marginPs = FOCUS_MARGIN * (endPs - startPs);
  return { startPs: Math.max(0, startPs - marginPs), endPs: endPs + marginPs };
}

export function decodeFacts(payload: Payload): TraceFacts {
  const hosts = readTable(payload, TABLES.hosts).all();
  return {
    durationPs: roundedUp(readNumber(payload, SCALARS.trace_duration_ps) ?? 0),
    nEvents: readNumber(payload, SCALARS.n_events) ?? 0,
    nSteps: readNumber(payload, SCALARS.n_marked_steps) ?? 0,
    focus: decodeFocus(payload),
    tracks: decodeTracks(payload),
    offsetPs: new Map(hosts.map(({ host, offset_ps }) => [host, offset_ps ?? 0])),
    diagnostics: payload.diagnostics,
  };
}

interface Rows {
  readonly first: Int32Array;
  readonly track: Float64Array;
  readonly depth: Int32Array;
}

/** Runs of equal (track, depth) in boxes sorted by them. */
function rowsOf(track: Float64Array, depth: Float64Array): Rows {
  const first: number[] = [];
  for (let i = 0; i < track.length; i++) {
    if (i === 0 || track[i] !== track[i - 1] || depth[i] !== depth[i - 1]) first.push(i);
  }
  return {
    first: Int32Array.from([...first, track.length]),
    track: Float64Array.from(first, (i) => track[i] as number),
    depth: Int32Array.from(first, (i) => depth[i] as number),
  };
}

function decodeCounters(payload: Payload): Map<number, Series> {
  const rows = readTable(payload, TABLES.counters);
  const track = numbersOf(rows.numbers('track'), 0);
  const timePs = numbersOf(rows.numbers('time_ps'), 0);
  const value = numbersOf(rows.numbers('value'), 0);
  const n = rows.length;
  const counters = new Map<number, Series>();
  for (let from = 0, i = 1; i <= n; i++) {
    if (i < n && track[i] === track[from]) continue;
    counters.set(track[from] as number, { timePs: timePs.subarray(from, i), value: value.subarray(from, i) });
    from = i;
  }
  return counters;
}

function decodeSteps(payload: Payload): StepMark[] {
  return readTable(payload, TABLES.steps)
    .all()
    .map(({ host, name, step, start_ps, duration_ps }) => ({
      host,
      name,
      number: (step ?? -1) < 0 ? null : step,
      startPs: start_ps ?? 0,
      durationPs: duration_ps ?? 0,
    }));
}

function decodeFlows(payload: Payload): Flow[] {
  const rows = readIfAny(payload, TABLES.flows)?.all() ?? [];
  return rows.map((row) => ({
    kind: row.kind,
    fromEvent: row.from_event ?? -1,
    fromTrack: row.from_track ?? -1,
    fromPs: row.from_ps ?? 0,
    toEvent: row.to_event ?? -1,
    toTrack: row.to_track ?? -1,
    toPs: row.to_ps ?? 0,
  }));
}

type BoxRows = TableRows<typeof TABLES.boxes.required, typeof TABLES.boxes.optional>;

function stylesOf(rows: BoxRows, payload: Payload, nameId: Int32Array): Uint8Array {
  const family = rows.numbers('family');
  const key = readTable(payload, TABLES.colors).numbers('color_key');
  const style = new Uint8Array(nameId.length);
  for (let i = 0; i < nameId.length; i++) style[i] = styleOf(family[i] ?? 0, key[nameId[i] as number] ?? 0);
  return style;
}

function decodeBoxes(rows: BoxRows, payload: Payload, rowFirst: Int32Array): Boxes {
  const n = rows.length;
  const name = rows.texts('name');
  const names = [...name.strings, '(no name)'];
  // Loops, not from(…): this runs with every answer, some 50,000 boxes between two frames.
  const nameId = new Int32Array(n);
  for (let i = 0; i < n; i++) nameId[i] = codeOf(name.codes[i], names.length);
  const durationPs = numbersOf(rows.numbers('duration_ps'), 0);
  const longestPs = numbersOf(rows.numbers('longest_ps'), 0);
  for (let i = 0; i < n; i++) longestPs[i] ||= durationPs[i] as number;
  return {
    n,
    startPs: numbersOf(rows.numbers('start_ps'), 0),
    durationPs,
    nameId,
    eventId: numbersOf(rows.numbers('event'), -1),
    nMerged: numbersOf(rows.numbers('n_merged'), 1),
    names,
    style: stylesOf(rows, payload, nameId),
    longestPs,
    rowFirst,
  };
}

export function decodeWindow(payload: Payload, request: WindowRequest): TraceWindow {
  const table = readTable(payload, TABLES.boxes);
  const rows = rowsOf(numbersOf(table.numbers('track'), 0), numbersOf(table.numbers('depth'), 0));
  const boxes = decodeBoxes(table, payload, rows.first);
  const startPs = readNumber(payload, SCALARS.start_ps) ?? 0;
  const endPs = readNumber(payload, SCALARS.end_ps) ?? 0;
  const counters = decodeCounters(payload);
  const steps = decodeSteps(payload);
  return {
    request,
    startPs,
    endPs,
    psPerPx: Math.max(endPs - startPs, 1) / request.widthPx,
    trackIds: request.trackIds ? new Set(request.trackIds) : null,
    boxes,
    rowTrack: rows.track,
    rowDepth: rows.depth,
    counters,
    steps,
    flows: request.hasFlows ? decodeFlows(payload) : null,
    nFlows: readNumber(payload, SCALARS.n_flows) ?? 0,
    nEvents: readNumber(payload, SCALARS.n_events_in_window) ?? 0,
    // Counters are thinned to pixels too, and steps left out where they are dense.
    isExact: boxes.nMerged.every((count) => count <= 1) && !counters.size && steps.length > 0,
  };
}

/** Unknown names (−1) are the last string. */
function codeOf(code: number | undefined, nNames: number): number {
  return code === undefined || code < 0 || code >= nNames ? nNames - 1 : code;
}

/**
 * The shift of times of hosts in both views from one to the other: adding a host that began earlier moves
 * all.
 */
export function movedPs(before: TraceFacts, after: TraceFacts): number {
  for (const [host, offsetPs] of after.offsetPs) {
    const was = before.offsetPs.get(host);
    if (was !== undefined) return offsetPs - was;
  }
  return 0;
}
