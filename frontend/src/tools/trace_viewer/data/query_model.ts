/** The server's answers about a query: its slices, groups and hits, the fields of the language, utilization. */

import { readNumber, readScalar, readTable, type RowOf } from '../../../api/declared';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import type { Payload, Table } from '../../../api/types';
import { eventOf, type EventRef } from './details_model';
import type { TraceWindow } from './model';

/** What every answer counts: matches on recorded tracks and, apart, on derived ones, which repeat the time. */
export interface Counts {
  readonly nRecorded: number;
  readonly nDerived: number;
  /** The answer is about the derived ones. */
  readonly isDerived: boolean;
}

export interface Slices extends Counts {
  readonly nMatches: number;
  readonly totalPs: number;
  /** The number of matches before the first row. */
  readonly first: number;
  readonly matches: readonly EventRef[];
  readonly rows: readonly SliceRow[];
  readonly table: Table;
}

export interface Groups extends Counts {
  readonly nGroups: number;
  readonly nEvents: number;
  readonly totalPs: number;
  readonly rangePs: number;
  readonly table: Table;
}

/** Where a window has matches. */
export interface WindowHits {
  readonly window: TraceWindow;
  /** 1 for each box of the window that contains matches. */
  readonly isLit: Uint8Array;
  /** Starts and ends of stretches with matches on any track: start, end, start, end … */
  readonly stretches: Float64Array;
  readonly nInWindow: number;
}

export interface QueryField {
  readonly field: string;
  readonly kind: string;
  readonly meaning: string;
}

type SliceRow = RowOf<(typeof TRACE_VIEWER)['slices']['tables']['slices']>;
type CountScalars = (typeof TRACE_VIEWER)['slices']['scalars'];

function countsOf(
  payload: Payload,
  scalars: Pick<CountScalars, 'n_recorded' | 'n_derived' | 'is_derived'>,
): Counts {
  return {
    nRecorded: readNumber(payload, scalars.n_recorded) ?? 0,
    nDerived: readNumber(payload, scalars.n_derived) ?? 0,
    isDerived: readScalar(payload, scalars.is_derived)?.value === true,
  };
}

export function decodeSlices(payload: Payload): Slices {
  const { tables, scalars } = TRACE_VIEWER.slices;
  const slices = readTable(payload, tables.slices);
  const rows = slices.all();
  return {
    ...countsOf(payload, scalars),
    nMatches: readNumber(payload, scalars.n_matches) ?? 0,
    totalPs: readNumber(payload, scalars.total_ps) ?? 0,
    first: readNumber(payload, scalars.first) ?? 0,
    matches: rows.map((row) => eventOf(row)),
    rows,
    table: slices.table,
  };
}

export function decodeGroups(payload: Payload): Groups {
  const { tables, scalars } = TRACE_VIEWER.groups;
  const rows = readTable(payload, tables.groups);
  return {
    ...countsOf(payload, scalars),
    nGroups: readNumber(payload, scalars.n_groups) ?? 0,
    nEvents: readNumber(payload, scalars.n_events) ?? 0,
    totalPs: readNumber(payload, scalars.total_ps) ?? 0,
    rangePs: readNumber(payload, scalars.range_ps) ?? 0,
    table: rows.table,
  };
}

/** The rows of `boxes` with matches are those of the same window's answer. */
export function decodeHits(payload: Payload, window: TraceWindow): WindowHits {
  const { tables, scalars } = TRACE_VIEWER.hits;
  const isLit = new Uint8Array(window.boxes.n);
  // Another number of boxes: the file has changed since the window was drawn, so the rows mean others.
  if (readNumber(payload, scalars.n_boxes) === window.boxes.n)
    for (const box of Array.from(readTable(payload, tables.hits).numbers('box')))
      if (box !== null && box >= 0 && box < isLit.length) isLit[box] = 1;
  const pixels = readTable(payload, tables.ruler).numbers('pixel');
  const pixelPs = readNumber(payload, scalars.pixel_ps) ?? 1;
  return {
    window,
    isLit,
    stretches: stretchesOf(pixels, window.startPs, pixelPs),
    nInWindow: readNumber(payload, scalars.n_in_window) ?? 0,
  };
}

/** Runs of neighboring pixels as starts and ends. */
export function stretchesOf(
  pixels: ArrayLike<number | null>,
  startPs: number,
  pixelPs: number,
): Float64Array {
  const edges: number[] = [];
  let last = -2;
  for (let i = 0; i < pixels.length; i++) {
    const pixel = pixels[i] ?? -1;
    if (pixel !== last + 1) {
      if (last >= 0) edges.push(startPs + (last + 1) * pixelPs);
      edges.push(startPs + pixel * pixelPs);
    }
    last = pixel;
  }
  if (last >= 0) edges.push(startPs + (last + 1) * pixelPs);
  return Float64Array.from(edges);
}

export function decodeFields(payload: Payload): QueryField[] {
  return readTable(payload, TRACE_VIEWER.fields.tables.fields).all();
}

export function utilizationTable(payload: Payload): Table {
  return readTable(payload, TRACE_VIEWER.utilization.tables.utilization).table;
}
