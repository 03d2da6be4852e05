/** The trace viewer's page: toolbar, minimap, timeline with its names, and below it the drawer. */

import { useSignal, type Signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fetchPayload } from '../../api/client';
import { format, plural } from '../../base/units';
import { RULER_PX, rulerBottomPx, STEP_ROW_PX } from '../../canvas/overlay';
import { rulerOf, timeLabel } from '../../canvas/ticks';
import { useTools } from '../../state/catalog';
import { useToolKeys } from '../../state/keys';
import { asApiError, shown } from '../../state/payload';
import { DiagnosticsBanner, Failed, Message } from '../../widgets/states';
import { Reading } from '../reading';
import type { ToolProps } from '../tool';
import { FIRST_HOSTS, rememberWidth, TOOL } from './data/ahead';
import { Beside } from './marks/beside';
import { Drawer } from './details/drawer';
import { ElsewhereHint } from './details/elsewhere_hint';
import { attachGestures } from './input/gestures';
import { followKeys, KEYS } from './input/keys';
import { applyParams, eventOf, rendererOf, selectEvent, selectEvents, useLink, viewOf } from './state/link';
import type { Fetch } from './data/loader';
import { MarkEdges, MarksRow } from './marks/row';
import { Minimap } from './minimap';
import { NamesColumn, PinnedNames } from './tracks/names_column';
import { NamesHandle, namesPx } from './tracks/names_width';
import { useKeptMarks } from './state/kept_marks';
import { Timeline } from './state/timeline';
import type { TrackView } from './drawing/track_view';
import { ToolBar } from './toolbar';
import { Tooltip } from './details/tooltip';
import './style.css';
import './tracks/style.css';
import './details/style.css';
import './query/style.css';
import './marks/style.css';
import './saving/style.css';

/** Scroll positions are rounded to this, so that names are laid out once per screen, not once per frame. */
const NAMES_STEP_PX = 256;

interface Source {
  readonly run: string;
  readonly hosts: readonly string[];
  readonly scope: string;
  readonly note: string;
  readonly fetch: Fetch;
}

function useSource({ run, hosts: chosen, info }: ToolProps): Source {
  const all = useTools(run).data?.hosts ?? [];
  const isMany = info.hosts === 'many' && chosen.length === 0 && all.length > FIRST_HOSTS;
  const hosts = isMany ? all.slice(0, FIRST_HOSTS).map(({ host }) => host) : chosen;
  const note = isMany
    ? `${String(FIRST_HOSTS)} of ${String(all.length)} hosts; choose others in the side bar`
    : '';
  const scope = `${run}\n${hosts.join(',')}`;
  useEffect(
    () => () => {
      shown.value = null;
    },
    [scope],
  );
  return useMemo(
    () => ({
      run,
      hosts,
      scope,
      note,
      fetch: async (question, params, signal) => {
        const query = { tool: TOOL, question, run, hosts, params };
        const payload = await fetchPayload(query, 'columns', signal);
        if (!question && !signal.aborted) shown.value = { query, payload };
        return payload;
      },
    }),
    [scope],
  );
}

function useTimeline(
  props: ToolProps,
  source: Source,
): {
  timeline: Timeline | null;
  scroller: { current: HTMLDivElement | null };
  host: { current: HTMLDivElement | null };
} {
  const scroller = useRef<HTMLDivElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const [timeline, setTimeline] = useState<Timeline | null>(null);
  const opened = useRef('');
  useLayoutEffect(() => {
    if (!scroller.current || !host.current) return;
    const stage = host.current;
    const fresh = new Timeline(scroller.current, stage, source.fetch, rendererOf(props.params));
    const undo = [attachGestures(fresh, scroller.current, stage), followKeys(fresh)];
    const resized = new ResizeObserver(() => {
      fresh.resize(stage.clientWidth, stage.clientHeight);
      if (stage.clientWidth > 0) rememberWidth(stage.clientWidth);
    });
    resized.observe(stage);
    fresh.resize(stage.clientWidth, stage.clientHeight);
    const rethemed = new MutationObserver(() => {
      fresh.retheme();
    });
    rethemed.observe(document.documentElement, { attributes: true, attributeFilter: ['class'] });
    setTimeline(fresh);
    opened.current = source.scope;
    const [view, event] = [viewOf(props.params), eventOf(props.params)];
    void fresh.start(view, async () => {
      applyParams(fresh, props.params);
      if (event !== null) await selectEvent(fresh, event, view === null);
      await selectEvents(fresh, props.params);
    });
    return () => {
      for (const each of undo) each();
      resized.disconnect();
      rethemed.disconnect();
      fresh.dispose();
    };
  }, [source.run]);
  useEffect(() => {
    if (!timeline || opened.current === source.scope) return;
    opened.current = source.scope;
    void timeline.reopen(source.fetch);
  }, [timeline, source.scope]);
  return { timeline, scroller, host };
}

/** Shown in place of the timeline while there is nothing to draw. */
function Instead({
  timeline,
  run,
  info,
  onRetry,
}: {
  timeline: Timeline | null;
  run: string;
  info: ToolProps['info'];
  onRetry(): void;
}): VNode | null {
  const status = timeline?.status.value ?? { kind: 'loading' as const };
  if (status.kind === 'loading')
    return (
      <div class="tv-instead">
        <Reading run={run} what="Reading the trace" bones={[20, 120, 200]} />
      </div>
    );
  if (status.kind === 'failed') {
    const error = asApiError(status.error);
    return (
      <div class="tv-instead">
        <Failed
          what="Trace viewer"
          kind={error.kind}
          message={error.message}
          remedy={error.remedy}
          details={error.details}
          onRetry={onRetry}
        />
      </div>
    );
  }
  if ((timeline?.facts.value?.nEvents ?? 0) > 0) return null;
  return (
    <div class="tv-instead">
      <Message title="This trace has no events.">
        <p>
          {info.reason ||
            'The profiler was started and stopped, but nothing ran in between, or tracing was off on this host.'}
        </p>
        <p>
          {info.remedy ||
            'Choose another host, or capture again for longer, while steps are running and with the host tracer on (host_tracer_level ≥ 1).'}
        </p>
      </Message>
    </div>
  );
}

function Announcer({ timeline }: { timeline: Timeline | null }): VNode {
  const selected = timeline?.selected.value;
  const track = selected && timeline.facts.value?.tracks.find(({ id }) => id === selected.track);
  const nSeveral = timeline?.several.events.value.length ?? 0;
  const place = track ? `, on ${track.name}` : '';
  const time = selected && `${format(selected.durationPs, 'ps')}, at ${timeLabel(selected.startPs, 1000)}`;
  const one = selected ? `Selected ${selected.name}, ${time}${place}` : '';
  const together = nSeveral > 0 ? `${plural(nSeveral, 'event')} in the selection` : '';
  const text = [one, together].filter(Boolean).join('; ');
  return (
    <div class="hidden-text" role="status" aria-live="polite">
      {text}
    </div>
  );
}

/** Reads the signal itself, so that pointer moves render nothing else. */
function HoverTip({ timeline }: { timeline: Timeline | null }): VNode | null {
  const hover = timeline?.hovered.value;
  return timeline && hover ? <Tooltip hover={hover} timeline={timeline} /> : null;
}

function whyNone({ filter, hidesEmpty }: TrackView): string {
  if (filter)
    return `No track ${hidesEmpty ? 'with events in this window ' : ''}has “${filter}” in its name.`;
  return hidesEmpty ? 'No track has events in this window.' : 'All tracks are hidden.';
}

/** All tracks are hidden or filtered out: offers to show them again. */
function NoTracks({ timeline }: { timeline: Timeline }): VNode | null {
  const view = timeline.trackView.value;
  if (
    timeline.layout.value.placeOfTrack.size > 0 ||
    timeline.layout.value.sections.length > 0 ||
    timeline.layout.value.nHidden === 0
  )
    return null;
  return (
    <div class="tv-none">
      <p>{whyNone(view)}</p>
      <button
        type="button"
        class="button"
        onClick={() => {
          timeline.changeTracks({ ...view, filter: '', hidden: new Set(), hidesEmpty: false });
        }}
      >
        Show all tracks
      </button>
    </div>
  );
}

interface FrameProps {
  timeline: Timeline | null;
  scroller: { current: HTMLDivElement | null };
  host: { current: HTMLDivElement | null };
  run: string;
  info: ToolProps['info'];
  scrollStep: Signal<number>;
  /** The timeline that the marks belong to. */
  owner: Timeline | null;
}

function TimelineFrame({ timeline, scroller, host, run, info, scrollStep, owner }: FrameProps): VNode {
  const layout = timeline?.layout.value;
  const stageHeight = scroller.current?.clientHeight ?? 800;
  const baseLabel = timeline?.facts.value
    ? rulerOf(timeline.camera.settled.value, host.current?.clientWidth ?? 1000).baseLabel
    : '';
  const style = { '--tv-top': `${String(layout?.pinnedBottomPx ?? RULER_PX)}px` };
  const rulerPx = rulerBottomPx(timeline?.hasSteps ?? false);
  return (
    <div class="tv-frame" style={style}>
      <div
        class="tv-scroller"
        ref={scroller}
        onScroll={(event) => {
          scrollStep.value = Math.floor(event.currentTarget.scrollTop / NAMES_STEP_PX);
        }}
      >
        <div class="tv-content" style={{ height: `${String(layout?.height ?? 0)}px` }}>
          <div class="tv-sticky tv-top">
            <div class="tv-corner" style={{ height: `${String(rulerPx)}px` }}>
              {timeline?.hasSteps && <span style={{ height: `${String(STEP_ROW_PX)}px` }}>Step</span>}
              <span>{baseLabel && `from ${baseLabel}`}</span>
            </div>
            {timeline && <PinnedNames timeline={timeline} />}
          </div>
          <div class="tv-sticky">
            <div
              class="tv-stage"
              data-tool={timeline?.tool.value}
              data-renderer={timeline?.renderer}
              ref={host}
              role="application"
              tabIndex={0}
              aria-label="Timeline: w and s zoom, a and d move, arrow keys select events, f zooms to the selected one; ? lists all keys"
            />
          </div>
          {timeline && (
            <NamesColumn
              timeline={timeline}
              fromPx={(scrollStep.value - 1) * NAMES_STEP_PX}
              toPx={(scrollStep.value + 2) * NAMES_STEP_PX + stageHeight}
            />
          )}
        </div>
      </div>
      {timeline && <NamesHandle timeline={timeline} />}
      {timeline && owner && <MarksRow timeline={timeline} owner={owner} />}
      {timeline && <MarkEdges timeline={timeline} />}
      <HoverTip timeline={timeline} />
      {timeline && <NoTracks timeline={timeline} />}
      {timeline && timeline.status.value.kind === 'ready' && <ElsewhereHint timeline={timeline} />}
      <Instead
        timeline={timeline}
        run={run}
        info={info}
        onRetry={() => {
          void timeline?.start(null);
        }}
      />
    </div>
  );
}

/** The page opens with a link that names its window. */
function isOpening(timeline: Timeline, params: ToolProps['params']): boolean {
  return timeline.status.value.kind === 'loading' && viewOf(params) !== null;
}

export function TraceViewer(props: ToolProps): VNode {
  const source = useSource(props);
  const { timeline, scroller, host } = useTimeline(props, source);
  const scrollStep = useSignal(0);
  useToolKeys(KEYS);
  useKeptMarks(timeline, props);
  useLink(timeline, props);
  const facts = timeline?.facts.value ?? null;
  return (
    <div
      class="tv"
      style={{ '--tv-names': `${String(namesPx.value)}px` }}
      aria-busy={timeline?.status.value.kind === 'loading'}
    >
      {timeline ? (
        <ToolBar
          timeline={timeline}
          run={source.run}
          hosts={source.hosts}
          note={source.note}
          scope={source.scope}
        />
      ) : (
        <div class="tv-bar" />
      )}
      <DiagnosticsBanner items={facts?.diagnostics ?? []} withNotes />
      {timeline && facts && facts.nEvents > 0 && (
        <Minimap key={source.scope} timeline={timeline} scope={source.scope} />
      )}
      <TimelineFrame
        timeline={timeline}
        scroller={scroller}
        host={host}
        run={source.run}
        info={props.info}
        scrollStep={scrollStep}
        owner={timeline}
      />
      {timeline && facts && timeline.marks.pair.value?.isBeside && (
        <Beside
          key={source.scope}
          first={timeline}
          fetch={source.fetch}
          scope={source.scope}
          pair={timeline.marks.pair.value}
          hasWindow={isOpening(timeline, props.params)}
          frame={(parts) => (
            <TimelineFrame
              {...parts}
              run={source.run}
              info={props.info}
              scrollStep={scrollStep}
              owner={timeline}
            />
          )}
        />
      )}
      {timeline && facts && <Drawer timeline={timeline} scope={source.scope} />}
      <Announcer timeline={timeline} />
    </div>
  );
}
