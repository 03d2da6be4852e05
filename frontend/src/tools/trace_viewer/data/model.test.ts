import { describe, expect, it } from 'vitest';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import type { Payload, Table } from '../../../api/types';
import { complete } from '../../testing';
import { decodeDensity, decodeDetails } from './details_model';
import { decodeFacts, decodeWindow, requestParams } from './model';
import { number, PAYLOAD, scalars, table, text, WHOLE } from '../testing';

describe('decoding', () => {
  it('finds rows and says whether anything is merged', () => {
    expect([...WHOLE.boxes.rowFirst]).toEqual([0, 2, 4, 5]);
    expect([...WHOLE.rowTrack]).toEqual([5, 5, 2]);
    expect([...WHOLE.rowDepth]).toEqual([0, 1, 0]);
    expect(WHOLE.isExact).toBe(false);
    expect(WHOLE.psPerPx).toBe(2);
    expect(WHOLE.boxes.names[WHOLE.boxes.nameId[4] as number]).toBe('(no name)');
  });
  it('names what an answer lacks', () => {
    const empty = { ...PAYLOAD, tables: {} };
    expect(() => decodeFacts(empty)).toThrow('has no table hosts');
    const request = { startPs: 0, endPs: 10, widthPx: 10, trackIds: null, hasFlows: false };
    expect(() => decodeWindow(empty, request)).toThrow('has no table boxes');
    const { boxes } = PAYLOAD.tables;
    const columns = boxes?.columns.filter(({ name }) => name !== 'duration_ps') ?? [];
    const renamed = { ...PAYLOAD, tables: { ...PAYLOAD.tables, boxes: { ...(boxes as Table), columns } } };
    expect(() => decodeWindow(renamed, request)).toThrow('has no number column duration_ps in table boxes');
  });
  it('requests whole picoseconds, rounded outward', () => {
    expect(
      requestParams({ startPs: 1.5, endPs: 9.2, widthPx: 800.4, trackIds: [5, 2], hasFlows: true }),
    ).toEqual({ start_ps: '1', end_ps: '10', width_px: '800', tracks: '5,2', flows: '1' });
    expect(
      requestParams({ startPs: null, endPs: null, widthPx: 800, trackIds: null, hasFlows: false }),
    ).toEqual({ width_px: '800' });
  });
  it('reads details', () => {
    const details = decodeDetails(
      complete(TRACE_VIEWER.event, {
        ...PAYLOAD,
        scalars: scalars({ event: 11, track: 5, depth: 1, start_ps: 120, duration_ps: 80, self_time_ps: 80 }),
        tables: {
          about: table(
            [
              text('name', ['name', 'step', 'full_name'], [0, 1, 2]),
              text('value', ['c', '7', 'c'], [0, 1, 2]),
            ],
            3,
          ),
          arguments: table([text('name', ['flops'], [0]), text('value', ['33'], [0])], 1),
          ancestors: table(
            [
              number('event', [10]),
              text('name', ['a'], [0]),
              number('start_ps', [100]),
              number('duration_ps', [300]),
            ],
            1,
          ),
        },
      }),
    );
    expect(details).toMatchObject({
      event: 11,
      name: 'c',
      step: '7',
      selfTimePs: 80,
      about: [],
      arguments: [{ name: 'flops', value: '33', shown: '' }],
    });
    expect(details.ancestors).toEqual([{ event: 10, track: 5, name: 'a', startPs: 100, durationPs: 300 }]);
    expect([details.flows, details.sameName, details.links]).toEqual([[], null, []]);
  });
});

describe('answers to the other questions', () => {
  type Question = Parameters<typeof complete>[0];
  const asked = (
    question: Question,
    tables: Payload['tables'],
    values: Record<string, number> = {},
  ): Payload => complete(question, { ...PAYLOAD, tables, scalars: scalars(values) });
  it('reads counters, steps and flows', () => {
    const tables = {
      counters: table(
        [number('track', [1, 1, 2]), number('time_ps', [1, 2, 3]), number('value', [7, 8, 9])],
        3,
      ),
      steps: table(
        [
          text('host', ['h'], [0]),
          text('name', ['1'], [0]),
          number('start_ps', [5]),
          number('duration_ps', [6]),
        ],
        1,
      ),
      flows: table(
        [
          number('from_event', [1]),
          number('from_track', [2]),
          number('from_ps', [3]),
          number('to_event', [4]),
          number('to_track', [5]),
          number('to_ps', [6]),
        ],
        1,
      ),
    };
    const window = decodeWindow(asked(TRACE_VIEWER.page, tables, { n_flows: 40 }), {
      startPs: 0,
      endPs: 10,
      widthPx: 10,
      trackIds: null,
      hasFlows: true,
    });
    expect([...window.counters].map(([track, { value }]) => [track, ...value])).toEqual([
      [1, 7, 8],
      [2, 9],
    ]);
    expect(window.steps).toEqual([{ host: 'h', name: '1', number: null, startPs: 5, durationPs: 6 }]);
    expect([window.flows?.[0], window.nFlows]).toEqual([
      { kind: '', fromEvent: 1, fromTrack: 2, fromPs: 3, toEvent: 4, toTrack: 5, toPs: 6 },
      40,
    ]);
  });
  it('reads utilization by section', () => {
    const density = table(
      [
        text('host', ['h'], [0, 0, 0]),
        text('section', ['TPU:0', 'Host threads'], [0, 0, 1]),
        number('pixel', [0, 3, 1]),
        number('busy_fraction', [0.5, 1, 0.25]),
      ],
      3,
    );
    expect(
      decodeDensity(asked(TRACE_VIEWER.minimap, { density }), 4).parts.map(({ section, busy }) => [
        section,
        ...busy,
      ]),
    ).toEqual([
      ['TPU:0', 0.5, 0, 0, 1],
      ['Host threads', 0, 0.25, 0, 0],
    ]);
  });
  it('reads links, flows and the statistics of the name', () => {
    const details = decodeDetails(
      asked(
        TRACE_VIEWER.event,
        {
          links: table(
            [
              text('text', ['Op profile'], [0, 0]),
              text('tool', ['op_profile'], [0, 0]),
              text('params', ['{"op":"fusion"}', 'not json'], [0, 1]),
            ],
            2,
          ),
          flows: table(
            [
              number('event', [9]),
              number('track', [2]),
              text('name', ['launch'], [0]),
              number('start_ps', [1]),
              number('duration_ps', [2]),
              text('direction', ['in'], [0]),
              text('kind', ['launch'], [0]),
            ],
            1,
          ),
          histogram: table([number('from_ps', [1, 10]), number('to_ps', [10, 100]), number('n', [3, 4])], 2),
        },
        { event: 1, n_same_name: 7, same_total_ps: 70, same_avg_ps: 10, same_min_ps: 1, same_max_ps: 99 },
      ),
    );
    expect(details.links.map(({ params }) => params)).toEqual([{ op: 'fusion' }, {}]);
    expect(details.flows).toMatchObject([{ event: 9, track: 2, direction: 'in', kind: 'launch' }]);
    expect(details.sameName).toMatchObject({
      n: 7,
      totalPs: 70,
      averagePs: 10,
      minPs: 1,
      maxPs: 99,
      histogram: [{ n: 3 }, { fromPs: 10, toPs: 100, n: 4 }],
    });
  });
});
