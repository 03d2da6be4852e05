import { describe, expect, it } from 'vitest';
import type { Column, Payload, Table } from '../../api/types';
import { RULER_PX } from '../../canvas/stage';
import { isTyping } from './gestures';
import { layoutTracks, PAD_PX, PITCH_PX, placeRows, rowTop, SECTION_PX, sectionKey, trackKey, tracksWithin } from './layout';
import { decodeDetails, decodeFacts, decodeWindow, requestParams, type TraceWindow } from './model';
import { familyOf, styleOf } from './names';
import { firstIn, neighbour, pick } from './picking';
import { isComfortable, marginFor, MAX_WIDTH_PX, planRequest, Windows, willServe, type Wanted } from './windows';

const number = (name: string, values: number[]): Column => ({ name, title: name, unit: '', kind: 'number', values });
const text = (name: string, strings: string[], codes: number[]): Column => ({ name, title: name, unit: '', kind: 'text', strings, codes });
const table = (columns: Column[], nRows: number): Table => ({ title: '', note: '', columns, n_rows: nRows });
const scalars = (values: Record<string, number>): Payload['scalars'] =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value, unit: 'ps', title: name, note: '' }]));

/**
 *   track 5 depth 0   |a a a a|      |b|
 *           depth 1     |c|d|
 *   track 2 depth 0          |xxx|        (xxx: 3 merged)
 */
const PAYLOAD: Payload = {
  tool: 'trace_viewer', run: 'r', hosts: ['h'], verdict: null, diagnostics: [],
  scalars: scalars({ trace_duration_ps: 1000, start_ps: 0, end_ps: 1000, n_events: 7 }),
  tables: {
    tracks: table([number('track', [5, 2]), text('section', ['TPU:0', 'Host threads'], [0, 1]), text('name', ['XLA Ops', 'python'], [0, 1]), text('kind', ['device'], [0, -1]), number('n_events', [4, 3]), number('n_depths', [2, 1])], 2),
    boxes: table([
      number('track', [5, 5, 5, 5, 2]), number('depth', [0, 0, 1, 1, 0]), number('start_ps', [100, 500, 120, 200, 400]), number('duration_ps', [300, 50, 80, 100, 90]),
      text('name', ['a', 'b', 'c', 'd'], [0, 1, 2, 3, -1]), number('event', [10, 13, 11, 12, 20]), number('n_merged', [1, 1, 1, 1, 3]),
    ], 5),
  },
};
const WHOLE = decodeWindow(PAYLOAD, { startPs: null, endPs: null, widthPx: 500, trackIds: null });
const FACTS = decodeFacts(PAYLOAD);

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
    expect(decodeWindow(empty, { startPs: 0, endPs: 10, widthPx: 10, trackIds: null }).boxes.n).toBe(0);
  });
  it('asks in whole picoseconds, outward', () => {
    expect(requestParams({ startPs: 1.5, endPs: 9.2, widthPx: 800.4, trackIds: [5, 2] })).toEqual({ start_ps: '1', end_ps: '10', width_px: '800', tracks: '5,2' });
    expect(requestParams({ startPs: null, endPs: null, widthPx: 800, trackIds: null })).toEqual({ width_px: '800' });
  });
  it('reads details', () => {
    const details = decodeDetails({
      ...PAYLOAD,
      scalars: scalars({ event: 11, track: 5, depth: 1, start_ps: 120, duration_ps: 80, self_time_ps: 80 }),
      tables: {
        about: table([text('name', ['name', 'step', 'full_name'], [0, 1, 2]), text('value', ['c', '7', 'c'], [0, 1, 2])], 3),
        arguments: table([text('name', ['flops'], [0]), text('value', ['33'], [0])], 1),
        ancestors: table([number('event', [10]), text('name', ['a'], [0]), number('start_ps', [100]), number('duration_ps', [300])], 1),
      },
    });
    expect(details).toMatchObject({ event: 11, name: 'c', step: '7', selfTimePs: 80, about: [], arguments: [['flops', '33']] });
    expect(details.ancestors).toEqual([{ event: 10, name: 'a', startPs: 100, durationPs: 300 }]);
  });
});

describe('layout', () => {
  const layout = layoutTracks(FACTS.tracks, new Set(), RULER_PX);
  it('stacks sections, tracks and depths', () => {
    const [first, second] = layout.sections;
    expect(first).toMatchObject({ name: 'TPU:0', y: RULER_PX, height: SECTION_PX + 2 * PITCH_PX + 2 * PAD_PX, nEvents: 4 });
    expect(second?.y).toBe(RULER_PX + SECTION_PX + 2 * PITCH_PX + 2 * PAD_PX);
    expect([...placeRows(WHOLE, layout).y]).toEqual([55, 73, 55 + 2 * PITCH_PX + PAD_PX + SECTION_PX + PAD_PX]);
  });
  it('folds sections away and tracks into one thin row', () => {
    const folded = layoutTracks(FACTS.tracks, new Set([sectionKey('TPU:0')]), RULER_PX);
    expect([...placeRows(WHOLE, folded).y].map(Number.isNaN)).toEqual([true, true, false]);
    const thin = layoutTracks(FACTS.tracks, new Set([trackKey(5), trackKey(2)]), RULER_PX);
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
  const layout = layoutTracks(FACTS.tracks, new Set(), RULER_PX);
  const a = pick(WHOLE, placeRows(WHOLE, layout), 150, 60, 0);
  it('finds what is under the pointer', () => {
    expect(a).toMatchObject({ event: 10, name: 'a', track: 5, depth: 0, nMerged: 1 });
    expect(pick(WHOLE, placeRows(WHOLE, layout), 450, 60, 0)).toBeNull();
  });
  it('begins with the first box in view of the topmost row that has one', () => {
    const first = firstIn(WHOLE, 0, Number.MAX_SAFE_INTEGER);
    expect(first?.name).toBe('a');
    expect(firstIn(WHOLE, (first?.startPs ?? 0) + 1, Number.MAX_SAFE_INTEGER)?.name).not.toBe('a');
    expect(firstIn(WHOLE, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER)).toBeNull();
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
  const wanted = (startPs: number, endPs: number, trackIds: number[] | null = null): Wanted => ({ view: { startPs, endPs }, widthPx: 1000, durationPs: 1e6, trackIds });
  const at = (startPs: number, endPs: number, psPerPx: number, more: Partial<TraceWindow> = {}): TraceWindow => ({ ...WHOLE, startPs, endPs, psPerPx, ...more });

  it('asks for a margin on both sides, within the trace and the widest picture', () => {
    expect(planRequest(wanted(4e5, 5e5))).toEqual({ startPs: 3e5, endPs: 6e5, widthPx: 3000, trackIds: null });
    expect(planRequest(wanted(0, 5e5))).toMatchObject({ startPs: 0, endPs: 1e6, widthPx: 2000 });
    expect(marginFor(100_000)).toBeGreaterThanOrEqual(0.1);
    expect(planRequest({ ...wanted(4e5, 5e5), widthPx: 5120 }).widthPx).toBeLessThanOrEqual(MAX_WIDTH_PX);
  });
  it.each([300, 1000, 1920, 3840, 7680])('is content with what it asked for (%s px)', (widthPx) => {
    const ask = { ...wanted(4e5, 5e5), widthPx };
    const request = planRequest(ask);
    const answer = at(request.startPs as number, request.endPs as number, ((request.endPs as number) - (request.startPs as number)) / request.widthPx);
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
    for (let i = 0; i < 16; i++) windows.add(at(0, 1e5, 1), false);
    expect(windows.best(wanted(4.4e5, 4.5e5))).toBe(whole);
  });
});

describe('names', () => {
  it.each([
    ['$array.py:12 all_reduce', 'host'], ['Iterator::Prefetch::Map', 'input'], ['all-reduce.3', 'collective'], ['MemcpyH2D', 'd2d'], ['fusion.124', 'compute'],
    ['dot.4', 'compute'], ['ThunkExecutor::Execute', 'launch'], ['131', 'launch'], ['XlaCompile', 'compile'], ['outfeed.1', 'output'], ['IDLE', 'idle'], ['void tensorflow::BiasNCHW<float>(int)', 'compute'], ['EagerKernelExecute', 'launch'],
  ])('%s is %s', (name, family) => {
    expect(familyOf(name)).toBe(family);
  });
  it('shades steps alike', () => {
    expect(styleOf('train 131')).toBe(styleOf('train 132'));
  });
});

describe('isTyping', () => {
  it('leaves letters to text fields, not to check boxes', () => {
    const input = (type: string): HTMLElement => Object.assign(document.createElement('input'), { type });
    expect([input('text'), input('search'), document.createElement('textarea'), document.createElement('select')].every(isTyping)).toBe(true);
    expect([input('checkbox'), document.createElement('button'), document.body, null].some(isTyping)).toBe(false);
  });
});
