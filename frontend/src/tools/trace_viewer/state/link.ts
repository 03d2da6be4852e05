/** The view as parameters of the URL: window, selected events, marked interval, marks, search, tracks. */

import { batch } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { clampViewport, isSameViewport, type Viewport } from '../../../canvas/viewport';
import type { ToolProps } from '../../tool';
import { decodeDetails } from '../data/details_model';
import { kindsText, parseKinds } from './flows';
import { markText, parseMark } from '../drawing/marked';
import { queryOfLink, type Search } from './search';
import { marksText, pairText, parseMarks, parsePair } from './marks';
import { decodePlaces, parseSeveral, severalParams, severalText } from './several';
import type { Timeline } from './timeline';
import { parseTrackView, trackParams, trackViewKey } from '../drawing/track_view';

type Params = ToolProps['params'];
type Change = Record<string, string | undefined>;

export function viewOf(params: Params): Viewport | null {
  const [startPs, endPs] = [Number(params.start_ps ?? Number.NaN), Number(params.end_ps ?? Number.NaN)];
  return endPs > startPs ? { startPs, endPs } : null;
}

export function eventOf(params: Params): number | null {
  const event = Number(params.event ?? Number.NaN);
  return Number.isSafeInteger(event) && event >= 0 ? event : null;
}

/**
 * `renderer=webgl` or `renderer=canvas2d` in the URL: to compare the two, or to override the automatic
 * choice.
 */
export function rendererOf({ renderer }: Params): 'webgl' | 'canvas2d' | undefined {
  return renderer === 'webgl' || renderer === 'canvas2d' ? renderer : undefined;
}

/** The marks, and which are compared. */
function marksParams({ marks }: Timeline): Change {
  const pair = marks.pair.value;
  return { marks: marksText(marks.list.value) || undefined, compare: pair ? pairText(pair) : undefined };
}

/** The timeline's state as URL parameters. */
function paramsOf(timeline: Timeline): Change {
  const view = timeline.camera.settled.value;
  const isWhole = isSameViewport(view, clampViewport(timeline.wholeView, timeline.durationPs));
  const { text, of, list, within, columns, opened } = timeline.search;
  const hasTotals = timeline.marked.value !== null || timeline.several.events.value.length > 0;
  return {
    start_ps: isWhole ? undefined : String(Math.round(view.startPs)),
    end_ps: isWhole ? undefined : String(Math.round(view.endPs)),
    event: timeline.selected.value ? String(timeline.selected.value.event) : undefined,
    events: severalText(timeline.several.events.value) || undefined,
    mark: timeline.marked.value ? markText(timeline.marked.value) : undefined,
    ...marksParams(timeline),
    q: text.value.trim() || undefined,
    qargs: undefined,
    of: of.value === 'auto' ? undefined : of.value,
    list: list.value ?? undefined,
    open: (list.value && opened.value) || undefined,
    by: hasTotals && timeline.totalsBy.value !== 'name' ? timeline.totalsBy.value : undefined,
    within: within.value === 'trace' ? undefined : within.value,
    args: columns.value || undefined,
    flows: timeline.hasAllFlows.value ? '1' : undefined,
    noflow: kindsText(timeline.hiddenKinds.value) || undefined,
    ...trackParams(timeline.trackView.value),
  };
}

const NAMES = [
  'start_ps',
  'end_ps',
  'event',
  'events',
  'mark',
  'marks',
  'compare',
  'q',
  'qargs',
  'of',
  'list',
  'open',
  'by',
  'within',
  'args',
  'flows',
  'noflow',
  'pin',
  'hide',
  'fold',
  'move',
  'only',
  'depths',
  'rows',
  'empty',
] as const;

function keyOf(params: Readonly<Record<string, string | undefined>>): string {
  return NAMES.map((name) => params[name] ?? '').join('\n');
}

/** Restores everything but the window, which start() takes, and the events, which must be requested. */
export function applyParams(timeline: Timeline, params: Params): void {
  batch(() => {
    const tracks = parseTrackView(params);
    if (trackViewKey(tracks) !== trackViewKey(timeline.trackView.value)) timeline.changeTracks(tracks);
    if ((params.mark ?? '') !== (timeline.marked.value ? markText(timeline.marked.value) : ''))
      timeline.mark(parseMark(params.mark));
    timeline.totalsBy.value = params.by ?? 'name';
    applySearch(timeline.search, params);
    const marks = parseMarks(params.marks);
    timeline.marks.restore(marks, parsePair(params.compare, marks.length));
    if ((params.noflow ?? '') !== kindsText(timeline.hiddenKinds.value))
      timeline.hideKinds(parseKinds(params.noflow));
    if ((params.flows === '1') !== timeline.hasAllFlows.value) timeline.showFlows(params.flows === '1');
  });
}

function applySearch(search: Search, params: Params): void {
  const { of, within } = params;
  // The text as typed may end with a space, which the URL does not have.
  const text = queryOfLink(params.q ?? '', params.qargs === '1');
  if (text !== search.text.value.trim()) search.set(text);
  search.count(of === 'recorded' || of === 'derived' ? of : 'auto');
  search.list.value = params.list ?? null;
  search.opened.value = params.open ?? null;
  search.within.value = within === 'window' || within === 'mark' ? within : 'trace';
  search.columns.value = params.args ?? '';
}

/** Selects the event of a link; `isAlone`: the link names no window, so go to the event. */
export async function selectEvent(timeline: Timeline, event: number | null, isAlone: boolean): Promise<void> {
  if (event === null) {
    timeline.select(null);
    return;
  }
  if (timeline.selected.value?.event === event) return;
  try {
    const details = decodeDetails(await timeline.ask('event', { event: String(event) }));
    timeline.revealEvent(details, details.depth, !isAlone);
    if (isAlone) timeline.zoomToSelected();
  } catch (error) {
    timeline.loader.refusal.value = error;
  }
}

/** Selects the events of a link together. */
export async function selectEvents(timeline: Timeline, params: Params): Promise<void> {
  const ids = parseSeveral(params.events);
  if (ids.length === 0) {
    timeline.selectSeveral([]);
    return;
  }
  if (ids.join('.') === severalText(timeline.several.events.value)) return;
  try {
    timeline.selectSeveral(decodePlaces(await timeline.ask('places', severalParams(ids)), ids));
  } catch (error) {
    timeline.loader.refusal.value = error;
  }
}

/** Writes the view to the URL, and follows the URL when something else changes it. */
export function useLink(timeline: Timeline | null, props: ToolProps): void {
  const written = useRef<string | null>(null);
  const onTheWay = useRef<string[]>([]);
  const { params } = props;
  const isReady = timeline?.status.value.kind === 'ready';
  const change = timeline && isReady ? paramsOf(timeline) : null;
  const key = change && keyOf(change);
  const paramsKey = keyOf(params);
  useEffect(() => {
    if (!change || key === null || key === written.current) return;
    // Back undoes a leap; when the page opens there is nothing to go back to yet.
    const hasLeapt = (timeline?.camera.takeLeap() ?? false) && written.current !== null;
    if (written.current !== null && written.current !== paramsKey) onTheWay.current.push(written.current);
    written.current = key;
    if (key !== paramsKey) props.setParams(change, hasLeapt ? 'push' : 'replace');
  }, [key]);
  useEffect(() => {
    if (!timeline || !isReady || written.current === null) return;
    // Our own change comes back through the URL a moment later, when the view may have moved on: ignore it.
    if (paramsKey !== written.current && onTheWay.current.includes(paramsKey)) return;
    onTheWay.current = [];
    if (paramsKey === written.current) return;
    written.current = paramsKey;
    timeline.camera.set(viewOf(params) ?? timeline.wholeView);
    timeline.camera.settle();
    applyParams(timeline, params);
    void selectEvent(timeline, eventOf(params), false);
    void selectEvents(timeline, params);
  }, [timeline, isReady, paramsKey]);
}
