/** One small trace, drawn as text, for the tests of the trace viewer's parts. */
import { TRACE_VIEWER } from '../../api/tables/trace_viewer';
import type { Column, Payload, Table } from '../../api/types';
import { RULER_PX } from '../../canvas/overlay';
import { complete, payloadOf } from '../testing';
import { type Layout, layoutTracks } from './drawing/layout';
import { decodeFacts, decodeWindow } from './data/model';
import { arrange, PLAIN, type TrackView } from './drawing/track_view';

export const number = (name: string, values: number[]): Column => ({
  name,
  title: name,
  unit: '',
  kind: 'number',
  values,
});
export const text = (name: string, strings: string[], codes: number[]): Column => ({
  name,
  title: name,
  unit: '',
  kind: 'text',
  strings,
  codes,
});
export const table = (columns: Column[], nRows: number): Table => ({
  title: '',
  note: '',
  columns,
  n_rows: nRows,
});
export const scalars = (values: Record<string, number>): Payload['scalars'] =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, { value, unit: 'ps', title: name, note: '' }]),
  );

/**
 *   track 5 depth 0   |a a a a|      |b|
 *           depth 1     |c|d|
 *   track 2 depth 0          |xxx|        (xxx: 3 merged)
 */
export const PAYLOAD: Payload = complete(
  TRACE_VIEWER.page,
  payloadOf({
    scalars: scalars({ trace_duration_ps: 1000, start_ps: 0, end_ps: 1000, n_events: 7 }),
    tables: {
      tracks: table(
        [
          number('track', [5, 2]),
          text('section', ['TPU:0', 'Host threads'], [0, 1]),
          text('name', ['XLA Ops', 'python'], [0, 1]),
          text('kind', ['device'], [0, -1]),
          number('n_events', [4, 3]),
          number('n_depths', [2, 1]),
        ],
        2,
      ),
      boxes: table(
        [
          number('track', [5, 5, 5, 5, 2]),
          number('depth', [0, 0, 1, 1, 0]),
          number('start_ps', [100, 500, 120, 200, 400]),
          number('duration_ps', [300, 50, 80, 100, 90]),
          text('name', ['a', 'b', 'c', 'd'], [0, 1, 2, 3, -1]),
          number('event', [10, 13, 11, 12, 20]),
          number('n_merged', [1, 1, 1, 1, 3]),
        ],
        5,
      ),
    },
  }),
);
export const WHOLE = decodeWindow(PAYLOAD, {
  startPs: null,
  endPs: null,
  widthPx: 500,
  trackIds: null,
  hasFlows: false,
});
export const FACTS = decodeFacts(PAYLOAD);
export const laidOut = (view: TrackView = PLAIN): Layout =>
  layoutTracks(arrange(FACTS.tracks, view), view, RULER_PX);
