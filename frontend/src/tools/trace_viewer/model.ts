/**
 * The server's window of the trace as the timeline uses it: tracks, boxes in rows, counters, steps, flows.
 */

import {
  findColumn,
  cellAt,
  numberAt,
  numberColumn,
  scalarNumber,
  textAt,
  textColumn,
} from '../../api/table';
import type { Diagnostic, NumberColumn, Payload, Table, TextColumn } from '../../api/types';
import type { Series } from '../../canvas/areas';
import type { Boxes } from '../../canvas/boxes';
import { styleOf, stylesOfNames } from './names';

export interface Track {
  readonly id: number;
  readonly host: string;
  readonly section: string;
  readonly name: string;
  readonly kind: string;
  readonly nEvents: number;
  readonly nDepths: number;
  readonly isDerived: boolean;
  /** Of a counter, over the whole trace; 0: not known. */
  readonly minValue: number;
  readonly maxValue: number;
  /** Of a counter: `bytes`, `bytes_per_s`, or as it is written; empty: none is known. */
  readonly unit: string;
}

/** What is asked for: null bounds mean the whole trace, null tracks mean all. */
export interface WindowRequest {
  readonly startPs: number | null;
  readonly endPs: number | null;
  readonly widthPx: number;
  readonly trackIds: readonly number[] | null;
  readonly hasFlows: boolean;
}

export interface StepMark {
  readonly host: string;
  readonly name: string;
  readonly startPs: number;
  readonly durationPs: number;
}

/** From where an event ends to where the one that it caused begins. */
export interface Flow {
  readonly fromEvent: number;
  readonly fromTrack: number;
  readonly fromPs: number;
  readonly toEvent: number;
  readonly toTrack: number;
  readonly toPs: number;
}

export interface TraceWindow {
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
  /** null: they were not asked for. */
  readonly flows: readonly Flow[] | null;
  readonly nFlows: number;
  readonly nEvents: number;
  /** Nothing is merged: zooming in needs no other answer. */
  readonly isExact: boolean;
}

export interface TraceFacts {
  readonly durationPs: number;
  readonly nEvents: number;
  readonly tracks: readonly Track[];
  /** What is added to each host's own times in this view of several. */
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

function numbersOf(column: NumberColumn | undefined, n: number, missing: number): Float64Array {
  const values = column?.values;
  if (values instanceof Float64Array && values.length === n) return values;
  // The browser's own copy: a loop that meets arrays of several kinds takes ten times as long.
  if (values instanceof Uint8Array && values.length === n) return new Float64Array(values);
  const numbers = new Float64Array(n).fill(missing);
  if (!values) return numbers;
  for (let i = 0; i < n; i++) {
    const value = values[i];
    if (value !== null && value !== undefined && value === value) numbers[i] = value;
  }
  return numbers;
}

/** A reader of a table's rows by column name, with something in place of what is missing. */
export function reader(table: Table | undefined): {
  n: number;
  number(name: string, row: number, missing?: number): number;
  text(name: string, row: number): string;
} {
  const numbers = new Map<string, NumberColumn | undefined>();
  const texts = new Map<string, TextColumn | undefined>();
  return {
    n: table?.n_rows ?? 0,
    number(name, row, missing = 0) {
      if (!numbers.has(name)) numbers.set(name, numberColumn(table, name));
      const column = numbers.get(name);
      return (column && numberAt(column, row)) ?? missing;
    },
    text(name, row) {
      if (!texts.has(name)) texts.set(name, textColumn(table, name));
      const column = texts.get(name);
      return (column && textAt(column, row)) ?? '';
    },
  };
}

export function decodeTracks(table: Table | undefined): Track[] {
  const { n, number, text } = reader(table);
  const derived = findColumn(table, 'is_derived');
  return Array.from({ length: n }, (_, row) => ({
    id: number('track', row, row),
    host: text('host', row),
    section: text('section', row),
    name: text('name', row),
    kind: text('kind', row),
    nEvents: number('n_events', row),
    nDepths: Math.max(1, number('n_depths', row, 1)),
    isDerived: derived ? cellAt(derived, row) === true : false,
    minValue: number('min_value', row),
    maxValue: number('max_value', row),
    unit: text('unit', row),
  }));
}

export function decodeFacts(payload: Payload): TraceFacts {
  const hosts = reader(payload.tables.hosts);
  return {
    durationPs: scalarNumber(payload, 'trace_duration_ps') ?? 0,
    nEvents: scalarNumber(payload, 'n_events') ?? 0,
    tracks: decodeTracks(payload.tables.tracks),
    offsetPs: new Map(
      Array.from({ length: hosts.n }, (_, row) => [hosts.text('host', row), hosts.number('offset_ps', row)]),
    ),
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

function decodeCounters(table: Table | undefined): Map<number, Series> {
  const n = table?.n_rows ?? 0;
  const column = (name: string): Float64Array => numbersOf(numberColumn(table, name), n, 0);
  const [track, timePs, value] = [column('track'), column('time_ps'), column('value')];
  const counters = new Map<number, Series>();
  for (let from = 0, i = 1; i <= n; i++) {
    if (i < n && track[i] === track[from]) continue;
    counters.set(track[from] as number, { timePs: timePs.subarray(from, i), value: value.subarray(from, i) });
    from = i;
  }
  return counters;
}

function decodeSteps(table: Table | undefined): StepMark[] {
  const { n, number, text } = reader(table);
  return Array.from({ length: n }, (_, row) => ({
    host: text('host', row),
    name: text('name', row),
    startPs: number('start_ps', row),
    durationPs: number('duration_ps', row),
  }));
}

function decodeFlows(table: Table | undefined): Flow[] {
  const { n, number } = reader(table);
  return Array.from({ length: n }, (_, row) => ({
    fromEvent: number('from_event', row, -1),
    fromTrack: number('from_track', row, -1),
    fromPs: number('from_ps', row),
    toEvent: number('to_event', row, -1),
    toTrack: number('to_track', row, -1),
    toPs: number('to_ps', row),
  }));
}

/** By the server's families and keys; by the names where it sends none. */
function stylesOf(
  table: Table | undefined,
  colors: Table | undefined,
  names: readonly string[],
  nameId: Int32Array,
): Uint8Array {
  const n = nameId.length;
  const [family, key] = [numberColumn(table, 'family'), numberColumn(colors, 'color_key')];
  const style = new Uint8Array(n);
  if (family && key) {
    for (let i = 0; i < n; i++)
      style[i] = styleOf(family.values[i] ?? 0, key.values[nameId[i] as number] ?? 0);
    return style;
  }
  const styles = stylesOfNames(names);
  for (let i = 0; i < n; i++) style[i] = styles[nameId[i] as number] as number;
  return style;
}

function decodeBoxes(table: Table | undefined, colors: Table | undefined, rowFirst: Int32Array): Boxes {
  const n = table?.n_rows ?? 0;
  const column = (name: string, missing: number): Float64Array =>
    numbersOf(numberColumn(table, name), n, missing);
  const name = textColumn(table, 'name');
  const names = [...(name?.strings ?? []), '(no name)'];
  // Loops, not from(…): this runs with every answer, some 50,000 boxes between two frames.
  const nameId = new Int32Array(n);
  for (let i = 0; i < n; i++) nameId[i] = codeOf(name?.codes[i], names.length);
  const durationPs = column('duration_ps', 0);
  const longestPs = column('longest_ps', 0);
  for (let i = 0; i < n; i++) longestPs[i] ||= durationPs[i] as number;
  return {
    n,
    startPs: column('start_ps', 0),
    durationPs,
    nameId,
    eventId: column('event', -1),
    nMerged: column('n_merged', 1),
    names,
    style: stylesOf(table, colors, names, nameId),
    longestPs,
    rowFirst,
  };
}

export function decodeWindow(payload: Payload, request: WindowRequest): TraceWindow {
  const { boxes: table, colors, counters, steps, flows } = payload.tables;
  const n = table?.n_rows ?? 0;
  const rows = rowsOf(
    numbersOf(numberColumn(table, 'track'), n, 0),
    numbersOf(numberColumn(table, 'depth'), n, 0),
  );
  const boxes = decodeBoxes(table, colors, rows.first);
  const startPs = scalarNumber(payload, 'start_ps') ?? request.startPs ?? 0;
  const endPs =
    scalarNumber(payload, 'end_ps') ?? request.endPs ?? scalarNumber(payload, 'trace_duration_ps') ?? 0;
  return {
    startPs,
    endPs,
    psPerPx: Math.max(endPs - startPs, 1) / request.widthPx,
    trackIds: request.trackIds ? new Set(request.trackIds) : null,
    boxes,
    rowTrack: rows.track,
    rowDepth: rows.depth,
    counters: decodeCounters(counters),
    steps: decodeSteps(steps),
    flows: request.hasFlows ? decodeFlows(flows) : null,
    nFlows: scalarNumber(payload, 'n_flows') ?? flows?.n_rows ?? 0,
    nEvents: scalarNumber(payload, 'n_events_in_window') ?? 0,
    // Counters are thinned to pixels too, and steps left out where they are dense.
    isExact:
      boxes.nMerged.every((count) => count <= 1) && !counters?.n_rows && Boolean(!steps || steps.n_rows),
  };
}

/** Unknown names (−1) are the last string. */
function codeOf(code: number | undefined, nNames: number): number {
  return code === undefined || code < 0 || code >= nNames ? nNames - 1 : code;
}

/**
 * How far times of hosts in both views moved from one to the other: adding a host that began earlier moves
 * all.
 */
export function movedPs(before: TraceFacts, after: TraceFacts): number {
  for (const [host, offsetPs] of after.offsetPs) {
    const was = before.offsetPs.get(host);
    if (was !== undefined) return offsetPs - was;
  }
  return 0;
}
