/** The trace viewer's page: tool bar, timeline, details of the selected event; window and selection in the URL. */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fetchPayload } from '../../api/client';
import type { Payload } from '../../api/types';
import { exactText, format, plural } from '../../base/units';
import { RULER_PX } from '../../canvas/stage';
import { rulerOf, timeLabel } from '../../canvas/ticks';
import { spanPs, type Viewport } from '../../canvas/viewport';
import { useToolKeys } from '../../state/keys';
import { asApiError, shown } from '../../state/payload';
import { DiagnosticsBanner, Failed, Loading, Message } from '../../widgets/states';
import type { ToolProps } from '../tool';
import { Details } from './details';
import { attachGestures } from './gestures';
import { Minimap } from './minimap';
import { decodeDetails } from './model';
import { NamesColumn } from './names_column';
import { Timeline } from './timeline';
import { Tooltip } from './tooltip';
import './style.css';

const TOOL = 'trace_viewer';

const KEYS = [
  { keys: 'w s', does: 'Zoom in and out (hold)' },
  { keys: 'a d', does: 'Move left and right (hold)' },
  { keys: 'Wheel', does: 'Zoom at the pointer; over the names: scroll' },
  { keys: 'Shift + wheel, drag', does: 'Move' },
  { keys: '← →', does: 'Select the previous or next event of the track' },
  { keys: '↑ ↓', does: 'Select the event around, or the first within' },
  { keys: 'f, double click', does: 'Zoom to the event' },
  { keys: '0', does: 'Show the whole trace' },
  { keys: 'Esc', does: 'Deselect' },
];

/** Scroll positions are rounded to this, so that names are laid out anew once a screen, not once a frame. */
const NAMES_STEP_PX = 256;

function viewOf(params: ToolProps['params']): Viewport | null {
  const [startPs, endPs] = [Number(params.start_ps ?? Number.NaN), Number(params.end_ps ?? Number.NaN)];
  return endPs > startPs ? { startPs, endPs } : null;
}

function eventOf(params: ToolProps['params']): number | null {
  const event = Number(params.event ?? Number.NaN);
  return Number.isInteger(event) && event >= 0 ? event : null;
}

/** `renderer=webgl` or `renderer=canvas2d` in the URL: to compare the two, or where the choice made here is wrong. */
function rendererOf({ renderer }: ToolProps['params']): 'webgl' | 'canvas2d' | undefined {
  return renderer === 'webgl' || renderer === 'canvas2d' ? renderer : undefined;
}

interface Source {
  readonly scope: string;
  fetch(params: Record<string, string>, signal: AbortSignal): Promise<Payload>;
}

function useSource({ run, hosts }: ToolProps): Source {
  const scope = `${run}\n${hosts.join(',')}`;
  useEffect(() => () => {
    shown.value = null;
  }, [scope]);
  return useMemo(() => ({
    scope,
    fetch: async (params, signal) => {
      const query = { tool: TOOL, run, hosts, params };
      const payload = await fetchPayload(query, 'columns', signal);
      if (params.event === undefined && !signal.aborted) shown.value = { query, payload };
      return payload;
    },
  }), [scope]);
}

/** Writes window and selection to the URL, and follows the URL where something else changed it. */
function useLink(timeline: Timeline | null, source: Source, props: ToolProps): void {
  const written = useRef('');
  const { params } = props;
  const view = timeline?.settledView.value;
  const selected = timeline?.selected.value;
  const isReady = timeline?.status.value.kind === 'ready';
  useEffect(() => {
    if (!timeline || !isReady || !view) return;
    const isWhole = view.startPs <= 0 && view.endPs >= timeline.durationPs;
    const change = {
      start_ps: isWhole ? undefined : String(Math.round(view.startPs)),
      end_ps: isWhole ? undefined : String(Math.round(view.endPs)),
      event: selected ? String(selected.event) : undefined,
    };
    const key = linkKey(change);
    if (key === linkKey(params)) written.current = key;
    if (key === written.current) return;
    written.current = key;
    props.setParams(change, 'replace');
  }, [timeline, isReady, view, selected]);
  useEffect(() => {
    if (!timeline || !isReady || linkKey(params) === written.current) return;
    written.current = linkKey(params);
    timeline.setView(viewOf(params) ?? { startPs: 0, endPs: timeline.durationPs });
    void selectEvent(timeline, source, eventOf(params));
  }, [timeline, isReady, params.start_ps, params.end_ps, params.event]);
}

function linkKey(params: Readonly<Record<string, string | undefined>>): string {
  return [params.start_ps ?? '', params.end_ps ?? '', params.event ?? ''].join(' ');
}

/** Selects the event of a link; one that is not there stays unselected. */
async function selectEvent(timeline: Timeline, source: Source, event: number | null): Promise<void> {
  if (event === null) {
    timeline.select(null);
    return;
  }
  if (timeline.selected.value?.event === event) return;
  try {
    const details = decodeDetails(await source.fetch({ event: String(event) }, new AbortController().signal));
    timeline.reveal({ ...details, nMerged: 1 });
  } catch (error) {
    timeline.refusal.value = error;
  }
}

function useTimeline(props: ToolProps, source: Source): { timeline: Timeline | null; scroller: { current: HTMLDivElement | null }; host: { current: HTMLDivElement | null } } {
  const scroller = useRef<HTMLDivElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const [timeline, setTimeline] = useState<Timeline | null>(null);
  useLayoutEffect(() => {
    if (!scroller.current || !host.current) return;
    const stage = host.current;
    const fresh = new Timeline(scroller.current, stage, source.fetch, rendererOf(props.params));
    const detach = attachGestures(fresh, scroller.current, stage);
    const resized = new ResizeObserver(() => { fresh.resize(stage.clientWidth, stage.clientHeight); });
    resized.observe(stage);
    fresh.resize(stage.clientWidth, stage.clientHeight);
    const rethemed = new MutationObserver(() => { fresh.retheme(); });
    rethemed.observe(document.documentElement, { attributes: true, attributeFilter: ['class'] });
    setTimeline(fresh);
    const event = eventOf(props.params);
    void fresh.start(viewOf(props.params), event === null ? undefined : () => selectEvent(fresh, source, event));
    return () => {
      detach();
      resized.disconnect();
      rethemed.disconnect();
      fresh.dispose();
    };
  }, [source.scope]);
  return { timeline, scroller, host };
}

function ToolBar({ timeline }: { timeline: Timeline | null }): VNode {
  const facts = timeline?.facts.value;
  const view = timeline?.settledView.value;
  if (!timeline || !facts || !view) return <div class="tv-bar" />;
  const refusal = timeline.refusal.value === null ? null : asApiError(timeline.refusal.value);
  return (
    <div class="tv-bar">
      <span title={exactText(spanPs(view), 'ps')}><b>{format(spanPs(view), 'ps')}</b> of {format(facts.durationPs, 'ps')}</span>
      <span class="muted">from {timeLabel(Math.round(view.startPs), Math.max(1, rulerOf(view, 1000).stepPs / 10))}</span>
      <span class="muted">{plural(facts.nEvents, 'event')} in the trace</span>
      {timeline.isBusy.value && <span class="muted tv-busy" role="status">loading detail…</span>}
      {refusal && <span class="tv-refusal" role="alert">{refusal.message} {refusal.remedy}</span>}
      <span class="tv-space" />
      <button type="button" class="button" onClick={() => { timeline.zoomBy(1.5, null); }} aria-label="Zoom out" title="Zoom out (s)">−</button>
      <button type="button" class="button" onClick={() => { timeline.zoomBy(1 / 1.5, null); }} aria-label="Zoom in" title="Zoom in (w)">+</button>
      <button type="button" class="button" onClick={() => { timeline.showAll(); }} title="Show the whole trace (0)">Whole trace</button>
    </div>
  );
}

function baseLabelOf(timeline: Timeline, widthPx: number): string {
  return rulerOf(timeline.settledView.value, widthPx).baseLabel;
}

/** What is in the timeline's place while there is nothing to draw. */
function Instead({ timeline, info, onRetry }: { timeline: Timeline | null; info: ToolProps['info']; onRetry(): void }): VNode | null {
  const status = timeline?.status.value ?? { kind: 'loading' as const };
  if (status.kind === 'loading') return <div class="tv-instead"><Loading what="Reading the trace" bones={[20, 120, 200]} /></div>;
  if (status.kind === 'failed') {
    const error = asApiError(status.error);
    return <div class="tv-instead"><Failed what="Trace viewer" kind={error.kind} message={error.message} remedy={error.remedy} onRetry={onRetry} /></div>;
  }
  if ((timeline?.facts.value?.nEvents ?? 0) > 0) return null;
  return (
    <div class="tv-instead">
      <Message title="This trace has no events.">
        <p>{info.reason || 'The profiler was started and stopped, but nothing ran in between, or tracing was off on this host.'}</p>
        <p>{info.remedy || 'Choose another host, or capture again for longer, while steps are running and with the host tracer on (host_tracer_level ≥ 1).'}</p>
      </Message>
    </div>
  );
}

function Announcer({ timeline }: { timeline: Timeline | null }): VNode {
  const selected = timeline?.selected.value;
  const track = selected && timeline.facts.value?.tracks.find(({ id }) => id === selected.track);
  const text = selected
    ? `Selected ${selected.name}, ${format(selected.durationPs, 'ps')}, at ${timeLabel(selected.startPs, 1000)}${track ? `, on ${track.name}` : ''}`
    : '';
  return <div class="tv-announcer" role="status" aria-live="polite">{text}</div>;
}

/** Reads the signal itself, so that the pointer's moves render nothing else. */
function HoverTip({ timeline }: { timeline: Timeline | null }): VNode | null {
  const hover = timeline?.hovered.value;
  return hover ? <Tooltip hover={hover} /> : null;
}

export function TraceViewer(props: ToolProps): VNode {
  const source = useSource(props);
  const { timeline, scroller, host } = useTimeline(props, source);
  const scrollStep = useSignal(0);
  useToolKeys(KEYS);
  useLink(timeline, source, props);
  const facts = timeline?.facts.value ?? null;
  const selected = timeline?.selected.value ?? null;
  const height = timeline?.layout.value.height ?? 0;
  const stageHeight = scroller.current?.clientHeight ?? 800;
  const stageWidth = host.current?.clientWidth ?? 1000;
  return (
    <div class="tv">
      <ToolBar timeline={timeline} />
      <DiagnosticsBanner items={facts?.diagnostics ?? []} />
      {timeline && facts && facts.nEvents > 0 && <Minimap key={source.scope} timeline={timeline} />}
      <div class="tv-frame">
        <div class="tv-scroller" ref={scroller} onScroll={(event) => { scrollStep.value = Math.floor(event.currentTarget.scrollTop / NAMES_STEP_PX); }}>
          <div class="tv-content" style={{ height: `${String(height)}px` }}>
            <div class="tv-sticky">
              <div class="tv-corner" style={{ height: `${String(RULER_PX)}px` }}>{timeline && facts ? baseLabelOf(timeline, stageWidth) : ''}</div>
              <div class="tv-stage" ref={host} role="application" tabIndex={0} aria-label="Timeline: w and s zoom, a and d move, arrow keys select events, f zooms to the selected one" />
            </div>
            {timeline && <NamesColumn timeline={timeline} fromPx={(scrollStep.value - 1) * NAMES_STEP_PX} toPx={(scrollStep.value + 2) * NAMES_STEP_PX + stageHeight} />}
          </div>
        </div>
        <HoverTip timeline={timeline} />
        <Instead timeline={timeline} info={props.info} onRetry={() => { void timeline?.start(viewOf(props.params)); }} />
      </div>
      {timeline && selected && (
        <Details
          picked={selected}
          tracks={facts?.tracks ?? []}
          scope={source.scope}
          fetchEvent={(event, signal) => source.fetch({ event: String(event) }, signal)}
          onSelect={(picked) => { timeline.reveal(picked); }}
          onPlace={(picked) => { timeline.select(picked); }}
          onZoom={() => { timeline.zoomToSelected(); }}
          onClose={() => { timeline.select(null); }}
        />
      )}
      <Announcer timeline={timeline} />
    </div>
  );
}
