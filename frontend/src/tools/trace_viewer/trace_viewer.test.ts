import { describe, expect, it } from 'vitest';
import type { Column, Payload, Table, TextColumn } from '../../api/types';
import { PIN_PX } from '../../canvas/boxes';
import { RULER_PX } from '../../canvas/overlay';
import { decodeDensity, decodeDetails, decodeFound, decodeTotals } from './details_model';
import { isTyping } from './keys';
import {
  contentY,
  layoutTracks,
  PAD_PX,
  PITCH_PX,
  placeRows,
  rowTop,
  SECTION_PX,
  trackAt,
  tracksWithin,
  type Layout,
} from './layout';
import { boxOf, markText, parseMark, stretchOf, totalsParams } from './marked';
import { decodeFacts, decodeWindow, requestParams, type TraceWindow } from './model';
import { FAMILIES, familyOf, styleOf, styleOfName } from './names';
import { targetOf } from './names_column';
import { elsewhere } from './nothing_here';
import { depthOf, firstIn, neighbour, pick } from './picking';
import { arrowsOf, sceneOf } from './scene';
import { Search } from './search';
import {
  arrange,
  fold,
  hide,
  move,
  parseTrackView,
  pin,
  PLAIN,
  sectionKey,
  trackKey,
  trackParams,
  type TrackView,
} from './track_view';
import { Wheel, type Turn } from './wheel';
import {
  isComfortable,
  marginFor,
  MAX_WIDTH_PX,
  neighboursOf,
  planRequest,
  Windows,
  willServe,
  type Wanted,
} from './windows';

const number = (name: string, values: number[]): Column => ({
  name,
  title: name,
  unit: '',
  kind: 'number',
  values,
});
const text = (name: string, strings: string[], codes: number[]): Column => ({
  name,
  title: name,
  unit: '',
  kind: 'text',
  strings,
  codes,
});
const table = (columns: Column[], nRows: number): Table => ({ title: '', note: '', columns, n_rows: nRows });
const scalars = (values: Record<string, number>): Payload['scalars'] =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, { value, unit: 'ps', title: name, note: '' }]),
  );

/**
 *   track 5 depth 0   |a a a a|      |b|
 *           depth 1     |c|d|
 *   track 2 depth 0          |xxx|        (xxx: 3 merged)
 */
const PAYLOAD: Payload = {
  tool: 'trace_viewer',
  run: 'r',
  hosts: ['h'],
  verdict: null,
  is_diagnosed: true,
  diagnostics: [],
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
};
const WHOLE = decodeWindow(PAYLOAD, {
  startPs: null,
  endPs: null,
  widthPx: 500,
  trackIds: null,
  hasFlows: false,
});
const FACTS = decodeFacts(PAYLOAD);
const laidOut = (view: TrackView = PLAIN): Layout =>
  layoutTracks(arrange(FACTS.tracks, view), view, RULER_PX);

describe('decoding', () => {
  it('finds rows and says whether anything is merged', () => {
    expect([...WHOLE.boxes.rowFirst]).toEqual([0, 2, 4, 5]);
    expect([...WHOLE.rowTrack]).toEqual([5, 5, 2]);
    expect([...WHOLE.rowDepth]).toEqual([0, 1, 0]);
    expect(WHOLE.isExact).toBe(false);
    expect(WHOLE.psPerPx).toBe(2);
    expect(WHOLE.boxes.names[WHOLE.boxes.nameId[4] as number]).toBe('(no name)');
  });
  it('survives an answer without tables', () => {
    const empty = { ...PAYLOAD, tables: {} };
    expect(decodeFacts(empty).tracks).toEqual([]);
    expect(
      decodeWindow(empty, { startPs: 0, endPs: 10, widthPx: 10, trackIds: null, hasFlows: false }).boxes.n,
    ).toBe(0);
  });
  it('asks in whole picoseconds, outward', () => {
    expect(
      requestParams({ startPs: 1.5, endPs: 9.2, widthPx: 800.4, trackIds: [5, 2], hasFlows: true }),
    ).toEqual({ start_ps: '1', end_ps: '10', width_px: '800', tracks: '5,2', flows: '1' });
    expect(
      requestParams({ startPs: null, endPs: null, widthPx: 800, trackIds: null, hasFlows: false }),
    ).toEqual({ width_px: '800' });
  });
  it('reads details', () => {
    const details = decodeDetails({
      ...PAYLOAD,
      scalars: scalars({ event: 11, track: 5, depth: 1, start_ps: 120, duration_ps: 80, self_time_ps: 80 }),
      tables: {
        about: table(
          [text('name', ['name', 'step', 'full_name'], [0, 1, 2]), text('value', ['c', '7', 'c'], [0, 1, 2])],
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
    });
    expect(details).toMatchObject({
      event: 11,
      name: 'c',
      step: '7',
      selfTimePs: 80,
      about: [],
      arguments: [['flops', '33']],
    });
    expect(details.ancestors).toEqual([{ event: 10, track: 5, name: 'a', startPs: 100, durationPs: 300 }]);
    expect([details.flows, details.sameName, details.links]).toEqual([[], null, []]);
  });
});

describe('layout', () => {
  const layout = laidOut();
  it('stacks sections, tracks and depths', () => {
    const [first, second] = layout.sections;
    expect(first?.section.title).toBe('TPU:0');
    expect(first).toMatchObject({ y: RULER_PX, height: SECTION_PX + 2 * PITCH_PX + 2 * PAD_PX, nEvents: 4 });
    expect(second?.y).toBe(RULER_PX + SECTION_PX + 2 * PITCH_PX + 2 * PAD_PX);
    expect([...placeRows(WHOLE, layout).y]).toEqual([
      55,
      73,
      55 + 2 * PITCH_PX + PAD_PX + SECTION_PX + PAD_PX,
    ]);
  });
  it('folds sections away and tracks into one thin row', () => {
    const folded = laidOut({ ...PLAIN, folded: new Set([sectionKey(5)]) });
    expect([...placeRows(WHOLE, folded).y].map(Number.isNaN)).toEqual([true, true, false]);
    const thin = laidOut({ ...PLAIN, folded: new Set([trackKey(5), trackKey(2)]) });
    const place = thin.placeOfTrack.get(5);
    expect(place && rowTop(place, 1) - rowTop(place, 0)).toBe(8);
    expect(thin.placeOfTrack.get(2)?.isFolded).toBe(false);
  });
  it('knows which tracks are in sight', () => {
    expect(tracksWithin(layout, 0, 60)).toEqual([5]);
    expect(tracksWithin(layout, 0, 1000)).toEqual([5, 2]);
  });
});

describe('picking', () => {
  const layout = laidOut();
  const a = pick(WHOLE, placeRows(WHOLE, layout), 150, 60, 0);
  it('finds what is under the pointer', () => {
    expect(a).toMatchObject({ event: 10, name: 'a', track: 5, depth: 0, nMerged: 1 });
    expect(pick(WHOLE, placeRows(WHOLE, layout), 450, 60, 0)).toBeNull();
  });
  it('begins with the first box in view of the topmost row that has one', () => {
    const first = firstIn(WHOLE, 0, Number.MAX_SAFE_INTEGER, layout.placeOfTrack);
    expect(first?.name).toBe('a');
    expect(
      firstIn(WHOLE, (first?.startPs ?? 0) + 1, Number.MAX_SAFE_INTEGER, layout.placeOfTrack)?.name,
    ).not.toBe('a');
    expect(
      firstIn(WHOLE, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER, layout.placeOfTrack),
    ).toBeNull();
  });

  it('walks left, right, in and out', () => {
    if (!a) throw new Error('nothing picked');
    const b = neighbour(WHOLE, a, 'right');
    expect(b?.name).toBe('b');
    expect(b && neighbour(WHOLE, b, 'left')?.name).toBe('a');
    expect(neighbour(WHOLE, a, 'left')).toBeNull();
    const c = neighbour(WHOLE, a, 'down');
    expect(c?.name).toBe('c');
    expect(c && neighbour(WHOLE, c, 'right')?.name).toBe('d');
    expect(c && neighbour(WHOLE, c, 'up')?.name).toBe('a');
    expect(b && neighbour(WHOLE, b, 'down')).toBeNull();
  });
});

describe('windows', () => {
  const wanted = (startPs: number, endPs: number, trackIds: number[] | null = null): Wanted => ({
    view: { startPs, endPs },
    widthPx: 1000,
    durationPs: 1e6,
    trackIds,
    hasFlows: false,
  });
  const at = (
    startPs: number,
    endPs: number,
    psPerPx: number,
    more: Partial<TraceWindow> = {},
  ): TraceWindow => ({ ...WHOLE, startPs, endPs, psPerPx, ...more });

  it('asks for a margin on both sides, within the trace and the widest picture', () => {
    expect(planRequest(wanted(4e5, 5e5))).toEqual({
      startPs: 3e5,
      endPs: 6e5,
      widthPx: 3000,
      trackIds: null,
      hasFlows: false,
    });
    expect(planRequest(wanted(0, 5e5))).toMatchObject({ startPs: 0, endPs: 1e6, widthPx: 2000 });
    expect(marginFor(100_000)).toBeGreaterThanOrEqual(0.1);
    expect(planRequest({ ...wanted(4e5, 5e5), widthPx: 5120 }).widthPx).toBeLessThanOrEqual(MAX_WIDTH_PX);
  });
  it.each([300, 1000, 1920, 3840, 7680])('is content with what it asked for (%s px)', (widthPx) => {
    const ask = { ...wanted(4e5, 5e5), widthPx };
    const request = planRequest(ask);
    const answer = at(
      request.startPs as number,
      request.endPs as number,
      ((request.endPs as number) - (request.startPs as number)) / request.widthPx,
    );
    expect(isComfortable(answer, ask)).toBe(true);
    expect(willServe(request, ask)).toBe(true);
  });
  it('draws the sharp window, else the finest that covers the view, else the whole', () => {
    const windows = new Windows();
    const whole = at(0, 1e6, 1000);
    const middle = at(3e5, 6e5, 100);
    windows.add(whole, true);
    windows.add(middle, false);
    expect(windows.best(wanted(0, 1e6))).toBe(whole);
    expect(windows.best(wanted(4e5, 5e5))).toBe(middle);
    expect(windows.best(wanted(4e5, 4.1e5))).toBe(middle);
    expect(windows.best(wanted(5e5, 7e5))).toBe(whole);
  });
  it('needs no finer picture of a window in which nothing is merged', () => {
    expect(isComfortable(at(0, 1e6, 1000, { isExact: true }), wanted(4e5, 4.1e5))).toBe(true);
    expect(isComfortable(at(0, 1e6, 1000), wanted(4e5, 4.1e5))).toBe(false);
  });
  it('does not take a window of some tracks for one of all', () => {
    const some = at(0, 1e6, 1, { trackIds: new Set([1, 2]) });
    expect(isComfortable(some, wanted(4e5, 5e5))).toBe(false);
    expect(isComfortable(some, wanted(4e5, 5e5, [2]))).toBe(true);
    expect(isComfortable(some, wanted(4e5, 5e5, [2, 3]))).toBe(false);
  });
  it('forgets the oldest, never the whole', () => {
    const windows = new Windows();
    const whole = at(0, 1e6, 1000);
    const old = at(4e5, 5e5, 1);
    windows.add(whole, true);
    windows.add(old, false);
    for (let i = 0; i < 30; i++) windows.add(at(0, 1e5, 1), false);
    expect(windows.best(wanted(4.4e5, 4.5e5))).toBe(whole);
  });
});

describe('names', () => {
  it.each([
    ['$array.py:12 all_reduce', 'python'],
    ['Iterator::Prefetch::Map', 'input'],
    ['all-reduce.3', 'collective'],
    ['MemcpyH2D', 'memcpy'],
    ['fusion.124', 'op'],
    ['dot.4', 'op'],
    ['ThunkExecutor::Execute', 'runtime'],
    ['131', 'step'],
    ['train 4', 'step'],
    ['jit_train_step(7)', 'module'],
    ['void tensorflow::BiasNCHW<float>(int)', 'kernel'],
  ])('%s is %s', (name, family) => {
    expect(familyOf(name)).toBe(family);
  });
  it('shades steps alike', () => {
    expect(styleOfName('train 131')).toBe(styleOfName('train 132'));
  });
  it("takes the server's word for family and shade, whatever it is", () => {
    expect(styleOf(3, 9)).toBe(styleOf(3, 1));
    expect(styleOf(99, 0)).toBe(0);
    const table0 = PAYLOAD.tables.boxes as Table;
    const boxes = table([...table0.columns, number('family', [3, 1, 1, 1, 5])], 5);
    const colors = table([number('color_key', [10, 11, 12, 13])], 4);
    const { style } = decodeWindow(
      { ...PAYLOAD, tables: { boxes, colors } },
      { startPs: 0, endPs: 10, widthPx: 10, trackIds: null, hasFlows: false },
    ).boxes;
    const codes = (table0.columns.find(({ kind }) => kind === 'text') as TextColumn).codes;
    expect([...style]).toEqual(
      [3, 1, 1, 1, 5].map((family, i) => styleOf(family, (codes[i] ?? 0) < 0 ? 0 : (codes[i] ?? 0) + 10)),
    );
    expect(Math.max(...style)).toBeLessThan(FAMILIES.length * 8);
  });
});

describe('tracks as the user wants them', () => {
  const shown = (view: TrackView): number[][] => {
    const { pinned, sections } = arrange(
      [
        { ...FACTS.tracks[0]!, id: 1 },
        { ...FACTS.tracks[0]!, id: 2, name: 'Steps' },
        { ...FACTS.tracks[0]!, id: 3 },
        { ...FACTS.tracks[1]!, id: 4 },
      ],
      view,
    );
    return [pinned.map(({ id }) => id), ...sections.map(({ tracks }) => tracks.map(({ id }) => id))];
  };
  it('hides, pins, filters and moves', () => {
    expect(shown(PLAIN)).toEqual([[], [1, 2, 3], [4]]);
    expect(shown(hide(PLAIN, [4, 1], true))).toEqual([[], [2, 3]]);
    expect(shown(pin(PLAIN, 3))).toEqual([[3], [1, 2], [4]]);
    expect(shown(pin(pin(PLAIN, 3), 3))).toEqual([[], [1, 2, 3], [4]]);
    expect(shown({ ...PLAIN, filter: 'step' })).toEqual([[], [2]]);
    expect(shown(move(PLAIN, 3, 1))).toEqual([[], [3, 1, 2], [4]]);
    expect(shown(move(move(PLAIN, 3, 1), 3, -1))).toEqual([[], [1, 2, 3], [4]]);
    expect(shown(move(pin(pin(PLAIN, 3), 1), 1, 3))).toEqual([[1, 3], [2], [4]]);
  });
  it('says the host only where there are several', () => {
    const two = [
      { ...FACTS.tracks[0]!, host: 'w0' },
      { ...FACTS.tracks[0]!, id: 9, host: 'w1' },
    ];
    expect(arrange(two, PLAIN).sections.map(({ title }) => title)).toEqual(['w0 · TPU:0', 'w1 · TPU:0']);
  });
  it('comes back from the URL as it went', () => {
    const view = fold(
      move(hide(pin({ ...PLAIN, filter: 'xla', maxDepths: 3 }, 7), [5, 6], true), 1, 2),
      's1',
    );
    expect(parseTrackView(JSON.parse(JSON.stringify(trackParams(view))) as Record<string, string>)).toEqual(
      view,
    );
    expect(Object.values(trackParams(PLAIN)).every((value) => value === undefined)).toBe(true);
    expect(parseTrackView({ pin: 'a,3', move: 'x:y,1', fold: '<b>', depths: '-4' })).toEqual({
      ...PLAIN,
      pinned: [3],
    });
  });
  it('puts pinned tracks above everything, and knows what is under the pointer', () => {
    const layout = laidOut(pin(PLAIN, 2));
    expect(layout.pinnedBottomPx).toBe(RULER_PX + PITCH_PX + 2 * PAD_PX);
    expect(layout.placeOfTrack.get(2)?.y).toBe(RULER_PX - PIN_PX);
    expect(trackAt(layout, contentY(layout, 30, 500))?.track.id).toBe(2);
    expect(trackAt(layout, contentY(layout, 90, 0))?.track.id).toBe(5);
    expect(tracksWithin(layout, 5000, 6000)).toEqual([2]);
  });
  it('cuts tracks to a number of rows', () => {
    const places = placeRows(WHOLE, laidOut({ ...PLAIN, maxDepths: 1 }));
    expect([...places.y].map(Number.isNaN)).toEqual([false, true, false]);
  });
  it('drops a track before the one whose middle is below', () => {
    const places = laidOut().sections.flatMap(({ tracks }) => tracks);
    expect([0, 60, 100, 900].map((y) => targetOf(places, y))).toEqual([5, 5, 2, -1]);
  });
});

describe('a marked stretch', () => {
  const layout = laidOut();
  it('comes back from the URL as it went', () => {
    for (const text of ['10-90', '10-90@5.2', '10-90@5:0-1']) expect(markText(parseMark(text)!)).toBe(text);
    expect([parseMark('90-10'), parseMark('x'), parseMark(undefined)]).toEqual([null, null, null]);
  });
  it('takes the tracks that the box touches, and the rows of a single one', () => {
    expect(boxOf(layout, 90, 10, 60, 130)).toEqual({
      startPs: 10,
      endPs: 90,
      trackIds: [5, 2],
      depths: null,
    });
    expect(boxOf(layout, 10, 90, 60, 62)).toEqual({ startPs: 10, endPs: 90, trackIds: [5], depths: [0, 0] });
    expect(stretchOf(boxOf(layout, 10, 90, 60, 62), layout).rows).toEqual({ topPx: 54, bottomPx: 73 });
  });
  it('asks for what is shown', () => {
    expect(totalsParams(parseMark('10-90')!, null)).toEqual({ totals: '1', start_ps: '10', end_ps: '90' });
    expect(totalsParams(parseMark('10-90')!, [4, 7]).tracks).toBe('4,7');
    expect(totalsParams(parseMark('10-90@5:0-1')!, [4, 7])).toMatchObject({
      tracks: '5',
      depth_from: '0',
      depth_to: '1',
    });
  });
});

describe('what is drawn besides boxes', () => {
  const layout = laidOut();
  it('dims what a search did not find and marks where it found', () => {
    const scene = sceneOf(WHOLE, layout, {
      text: 'b',
      events: new Set([20]),
      matches: [{ event: 13, track: 5, name: 'b', startPs: 500, durationPs: 50 }],
    });
    expect([...(scene.isDim ?? [])]).toEqual([1, 0, 1, 1, 0]);
    expect(scene.hits).toEqual([{ timePs: 500, y: 89, height: 4 }]);
    expect(sceneOf(WHOLE, layout, null).isDim).toBeNull();
  });
  it('draws an arrow from the end of the cause to the beginning of the effect', () => {
    const me = {
      event: 13,
      track: 5,
      name: 'b',
      startPs: 500,
      durationPs: 50,
      nMerged: 1,
      longestPs: 50,
      depth: 0,
    };
    const launch = {
      event: 11,
      track: 5,
      name: 'c',
      startPs: 120,
      durationPs: 80,
      direction: 'in' as const,
      kind: 'launch',
    };
    expect(depthOf(WHOLE, 11, 5, 120)).toBe(1);
    expect(arrowsOf(WHOLE, layout, me, [launch])).toEqual([
      { fromPs: 200, fromY: 73 + 8.5, toPs: 500, toY: 55 + 8.5, isOwn: true },
    ]);
    expect(arrowsOf(WHOLE, layout, me, [{ ...launch, track: 77 }])).toEqual([]);
  });
});

describe('an empty window', () => {
  const layout = laidOut();
  const look = (startPs: number, endPs: number, ...inSight: number[]): [string, string] | null => {
    const found = elsewhere(WHOLE, WHOLE, layout, { startPs, endPs }, new Set(inSight));
    return found && [found.side, found.picked.name];
  };
  it('is silent where a track in sight has an event, even one that spans the window', () => {
    expect(look(150, 160, 5, 2)).toBeNull();
    expect(look(420, 430, 5, 2)).toBeNull();
  });
  it('points to tracks out of sight that have events in the window', () => {
    expect(look(150, 160, 2)).toEqual(['up', 'a']);
    expect(look(420, 430, 5)).toEqual(['down', '(no name)']);
  });
  it('points to the nearest event in time', () => {
    expect(look(0, 60, 5, 2)).toEqual(['right', 'a']);
    expect(look(560, 900, 5, 2)).toEqual(['left', 'b']);
  });
  it('knows no other place where tracks are hidden', () => {
    const none = laidOut(hide(PLAIN, [5, 2], true));
    expect(elsewhere(WHOLE, WHOLE, none, { startPs: 0, endPs: 50 }, new Set())).toBeNull();
  });
});

describe('answers beside the window', () => {
  const asked = (tables: Payload['tables'], values: Record<string, number> = {}): Payload => ({
    ...PAYLOAD,
    tables,
    scalars: scalars(values),
  });
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
    const window = decodeWindow(asked(tables, { n_flows: 40 }), {
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
    expect(window.steps).toEqual([{ host: 'h', name: '1', startPs: 5, durationPs: 6 }]);
    expect([window.flows?.[0], window.nFlows]).toEqual([
      { fromEvent: 1, fromTrack: 2, fromPs: 3, toEvent: 4, toTrack: 5, toPs: 6 },
      40,
    ]);
  });
  it('reads what was found and what was added up', () => {
    const matches = table(
      [
        number('event', [3]),
        number('track', [5]),
        text('name', ['c'], [0]),
        number('start_ps', [1]),
        number('duration_ps', [2]),
      ],
      1,
    );
    expect(decodeFound(asked({ matches }, { n_matches: 483, n_names: 6 }))).toMatchObject({
      nMatches: 483,
      nNames: 6,
      matches: [{ event: 3, track: 5, name: 'c', startPs: 1, durationPs: 2 }],
    });
    expect(decodeTotals(asked({}, { n_events: 4, range_ps: 9 }))).toEqual({
      nEvents: 4,
      rangePs: 9,
      table: null,
    });
    const density = table(
      [
        text('host', ['h'], [0, 0, 0]),
        text('section', ['TPU:0', 'Host threads'], [0, 0, 1]),
        number('pixel', [0, 3, 1]),
        number('busy_fraction', [0.5, 1, 0.25]),
      ],
      3,
    );
    expect(decodeDensity(asked({ density }), 4).parts.map(({ section, busy }) => [section, ...busy])).toEqual(
      [
        ['TPU:0', 0.5, 0, 0, 1],
        ['Host threads', 0, 0.25, 0, 0],
      ],
    );
  });
  it('reads links, flows and the statistics of the name', () => {
    const details = decodeDetails(
      asked(
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

describe('search', () => {
  /** 12,500 matches, one each 10 ps, told 5,000 at a time. */
  const answer = (params: Record<string, string>): Promise<Payload> => {
    const total = 12_500;
    const after = params.after_event === undefined ? null : Number(params.after_event) + 1;
    const before = params.before_event === undefined ? null : Number(params.before_event);
    const first = after ?? (before === null ? 0 : Math.max(0, before - 5000));
    const events = Array.from(
      { length: Math.min(Number(params.limit), (before ?? total) - first) },
      (_, i) => first + i,
    );
    const matches = table(
      [
        number('event', events),
        number(
          'track',
          events.map(() => 5),
        ),
        text(
          'name',
          ['x'],
          events.map(() => 0),
        ),
        number(
          'start_ps',
          events.map((event) => event * 10),
        ),
        number(
          'duration_ps',
          events.map(() => 5),
        ),
      ],
      events.length,
    );
    return Promise.resolve({
      ...PAYLOAD,
      tables: { matches },
      scalars: scalars({ n_matches: total, n_names: 1 }),
    });
  };
  it('walks all matches, page after page, and around both ends', async () => {
    const seen: number[] = [];
    const search = new Search(
      answer,
      () => undefined,
      ({ event }) => {
        seen.push(event);
      },
    );
    search.set({ text: 'x', hasArguments: false });
    await search.go(1, 95);
    expect([seen.at(-1), search.at.value]).toEqual([10, 10]);
    await search.go(-1, 95);
    await search.goTo(4999);
    await search.go(1, 0);
    await search.go(-1, 0);
    await search.goTo(0);
    await search.go(-1, 0);
    await search.go(1, 0);
    expect(seen).toEqual([10, 9, 4999, 5000, 4999, 0, 12_499, 0]);
    expect(search.highlight).toMatchObject({ text: 'x' });
    search.set({ text: '', hasArguments: false });
    expect(search.highlight).toBeNull();
  });
});

describe('wheel', () => {
  const turn = (more: Partial<Turn>): Turn => ({
    deltaX: 0,
    deltaY: 0,
    deltaMode: 0,
    ctrlKey: false,
    metaKey: false,
    shiftKey: false,
    altKey: false,
    ...more,
  });
  it('zooms by notches of a mouse and moves with two fingers', () => {
    expect(new Wheel().turn(turn({ deltaY: -120, wheelDeltaY: 120 }), 0)).toMatchObject({ act: 'zoom' });
    expect(new Wheel().turn(turn({ deltaY: 7, wheelDeltaY: -21 }), 0)).toEqual({ act: 'move', x: 0, y: 7 });
    expect(new Wheel().turn(turn({ deltaX: 9, deltaY: 2, wheelDeltaY: -6 }), 0)).toEqual({
      act: 'move',
      x: 9,
      y: 0,
    });
    expect(new Wheel().turn(turn({ deltaY: 3, deltaMode: 1 }), 0)).toMatchObject({ act: 'zoom' });
  });
  it('keeps the meaning of a stream, and takes keys at their word', () => {
    const wheel = new Wheel();
    wheel.turn(turn({ deltaY: 4, wheelDeltaY: -12 }), 0);
    expect(wheel.turn(turn({ deltaY: 100, wheelDeltaY: -120 }), 100)).toMatchObject({ act: 'move' });
    expect(wheel.turn(turn({ deltaY: 100, wheelDeltaY: -120 }), 900)).toMatchObject({ act: 'zoom' });
    expect(new Wheel().turn(turn({ deltaY: -5, wheelDeltaY: 15, ctrlKey: true }), 0)).toEqual({
      act: 'zoom',
      factor: Math.exp(-0.05),
    });
    expect(new Wheel().turn(turn({ deltaY: 120, wheelDeltaY: -120, shiftKey: true }), 0)).toEqual({
      act: 'move',
      x: 120,
      y: 0,
    });
    expect(new Wheel().turn(turn({ deltaY: 120, wheelDeltaY: -120, altKey: true }), 0)).toEqual({
      act: 'move',
      x: 0,
      y: 120,
    });
  });
});

describe('what is asked for ahead', () => {
  it('is closer, beside and further, all within the trace', () => {
    const here: Wanted = {
      view: { startPs: 0, endPs: 1e5 },
      widthPx: 1000,
      durationPs: 1e6,
      trackIds: null,
      hasFlows: false,
    };
    const views = neighboursOf(here, 5e4).map(({ view }) => [view.startPs, view.endPs]);
    expect(views[0]).toEqual([35000, 65000]);
    expect(views.slice(1, 3)).toEqual([
      [1e5, 2e5],
      [0, 1e5],
    ]);
    for (const [startPs, endPs] of views)
      expect((startPs as number) >= 0 && (endPs as number) <= 1e6).toBe(true);
  });
});

describe('isTyping', () => {
  it('leaves letters to text fields, not to check boxes', () => {
    const input = (type: string): HTMLElement => Object.assign(document.createElement('input'), { type });
    expect(
      [
        input('text'),
        input('search'),
        document.createElement('textarea'),
        document.createElement('select'),
      ].every(isTyping),
    ).toBe(true);
    expect([input('checkbox'), document.createElement('button'), document.body, null].some(isTyping)).toBe(
      false,
    );
  });
});
