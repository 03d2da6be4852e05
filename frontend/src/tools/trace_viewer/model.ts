/** The server's answers as the timeline uses them: a window of boxes with its rows, the list of tracks, an event's details. */

import { cellAt, findColumn, numberAt, numberColumn, scalarNumber, textAt, textColumn } from '../../api/table';
import type { Diagnostic, NumberColumn, Payload, Table } from '../../api/types';
import type { Boxes } from '../../canvas/boxes';
import { stylesOf } from './names';

export interface Track {
  readonly id: number;
  readonly section: string;
  readonly name: string;
  readonly kind: string;
  readonly nEvents: number;
  readonly nDepths: number;
}

/** What is asked for: null bounds mean the whole trace, null tracks mean all. */
export interface WindowRequest {
  readonly startPs: number | null;
  readonly endPs: number | null;
  readonly widthPx: number;
  readonly trackIds: readonly number[] | null;
}

export interface TraceWindow {
  readonly startPs: number;
  readonly endPs: number;
  readonly psPerPx: number;
  readonly trackIds: ReadonlySet<number> | null;
  readonly boxes: Boxes;
  readonly rowTrack: Int32Array;
  readonly rowDepth: Int32Array;
  readonly styleOfName: Uint8Array;
  /** Nothing is merged: zooming in needs no other answer. */
  readonly isExact: boolean;
}

export interface TraceFacts {
  readonly durationPs: number;
  readonly nEvents: number;
  readonly tracks: readonly Track[];
  readonly diagnostics: readonly Diagnostic[];
}

export function requestParams(request: WindowRequest): Record<string, string> {
  const params: Record<string, string> = { width_px: String(Math.round(request.widthPx)) };
  if (request.startPs !== null) params.start_ps = String(Math.floor(request.startPs));
  if (request.endPs !== null) params.end_ps = String(Math.ceil(request.endPs));
  if (request.trackIds) params.tracks = request.trackIds.join(',');
  return params;
}

function numbersOf(column: NumberColumn | undefined, n: number, missing: number): Float64Array {
  if (column?.values instanceof Float64Array && column.values.length === n) return column.values;
  const numbers = new Float64Array(n).fill(missing);
  if (!column) return numbers;
  for (let i = 0; i < n; i++) numbers[i] = numberAt(column, i) ?? missing;
  return numbers;
}

export function decodeTracks(table: Table | undefined): Track[] {
  if (!table) return [];
  const [id, events, depths] = ['track', 'n_events', 'n_depths'].map((name) => numberColumn(table, name));
  const [section, name, kind] = ['section', 'name', 'kind'].map((column) => textColumn(table, column));
  return Array.from({ length: table.n_rows }, (_, row) => ({
    id: (id && numberAt(id, row)) ?? row,
    section: (section && textAt(section, row)) ?? '',
    name: (name && textAt(name, row)) ?? '',
    kind: (kind && textAt(kind, row)) ?? '',
    nEvents: (events && numberAt(events, row)) ?? 0,
    nDepths: Math.max(1, (depths && numberAt(depths, row)) ?? 1),
  }));
}

export function decodeFacts(payload: Payload): TraceFacts {
  return {
    durationPs: scalarNumber(payload, 'trace_duration_ps') ?? 0,
    nEvents: scalarNumber(payload, 'n_events') ?? 0,
    tracks: decodeTracks(payload.tables.tracks),
    diagnostics: payload.diagnostics,
  };
}

interface Rows {
  readonly first: Int32Array;
  readonly track: Int32Array;
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
    track: Int32Array.from(first, (i) => track[i] as number),
    depth: Int32Array.from(first, (i) => depth[i] as number),
  };
}

export function decodeWindow(payload: Payload, request: WindowRequest): TraceWindow {
  const table = payload.tables.boxes;
  const n = table?.n_rows ?? 0;
  const column = (name: string, missing: number): Float64Array => numbersOf(numberColumn(table, name), n, missing);
  const name = textColumn(table, 'name');
  const names = [...(name?.strings ?? []), '(no name)'];
  const nMerged = column('n_merged', 1);
  const rows = rowsOf(column('track', 0), column('depth', 0));
  const startPs = scalarNumber(payload, 'start_ps') ?? request.startPs ?? 0;
  const endPs = scalarNumber(payload, 'end_ps') ?? request.endPs ?? scalarNumber(payload, 'trace_duration_ps') ?? 0;
  return {
    startPs,
    endPs,
    psPerPx: Math.max(endPs - startPs, 1) / request.widthPx,
    trackIds: request.trackIds ? new Set(request.trackIds) : null,
    boxes: {
      n,
      startPs: column('start_ps', 0),
      durationPs: column('duration_ps', 0),
      nameId: Int32Array.from({ length: n }, (_, i) => codeOf(name?.codes[i], names.length)),
      eventId: column('event', -1),
      nMerged,
      names,
      rowFirst: rows.first,
    },
    rowTrack: rows.track,
    rowDepth: rows.depth,
    styleOfName: stylesOf(names),
    isExact: nMerged.every((count) => count <= 1),
  };
}

/** Unknown names (−1) are the last string. */
function codeOf(code: number | undefined, nNames: number): number {
  return code === undefined || code < 0 || code >= nNames ? nNames - 1 : code;
}

export interface Ancestor {
  readonly event: number;
  readonly name: string;
  readonly startPs: number;
  readonly durationPs: number;
}

export interface EventDetails {
  readonly event: number;
  readonly track: number;
  readonly depth: number;
  readonly startPs: number;
  readonly durationPs: number;
  readonly selfTimePs: number | null;
  readonly step: string | null;
  readonly name: string;
  /** Other words about the event, as the server names them. */
  readonly about: readonly (readonly [string, string])[];
  readonly arguments: readonly (readonly [string, string])[];
  readonly ancestors: readonly Ancestor[];
}

function pairs(table: Table | undefined): [string, string][] {
  const name = findColumn(table, 'name');
  const value = findColumn(table, 'value');
  if (!table || !name || !value) return [];
  return Array.from({ length: table.n_rows }, (_, row) => [String(cellAt(name, row) ?? ''), String(cellAt(value, row) ?? '—')]);
}

function decodeAncestors(table: Table | undefined): Ancestor[] {
  if (!table) return [];
  const [event, start, duration] = ['event', 'start_ps', 'duration_ps'].map((column) => numberColumn(table, column));
  const name = textColumn(table, 'name');
  return Array.from({ length: table.n_rows }, (_, row) => ({
    event: (event && numberAt(event, row)) ?? -1,
    name: (name && textAt(name, row)) ?? '(no name)',
    startPs: (start && numberAt(start, row)) ?? 0,
    durationPs: (duration && numberAt(duration, row)) ?? 0,
  }));
}

export function decodeDetails(payload: Payload): EventDetails {
  const scalar = (name: string): number | null => scalarNumber(payload, name);
  const about = pairs(payload.tables.about);
  const word = (name: string): string | undefined => about.find(([key]) => key === name)?.[1];
  const step = word('step') ?? word('step_name') ?? scalar('step');
  return {
    event: scalar('event') ?? -1,
    track: scalar('track') ?? -1,
    depth: scalar('depth') ?? 0,
    startPs: scalar('start_ps') ?? 0,
    durationPs: scalar('duration_ps') ?? 0,
    selfTimePs: scalar('self_time_ps'),
    step: step === null || step === undefined ? null : String(step),
    name: word('name') ?? '(no name)',
    about: about.filter(([key, value]) => !['name', 'step', 'step_name', 'track', 'section'].includes(key) && value !== word('name')),
    arguments: pairs(payload.tables.arguments),
    ancestors: decodeAncestors(payload.tables.ancestors),
  };
}
