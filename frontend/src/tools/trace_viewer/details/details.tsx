/** The selected event: its times, its arguments, all events of its name, and links from it. */

import type { ComponentChildren, VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { exactText, format, plural } from '../../../base/units';
import { timeLabel } from '../../../canvas/ticks';
import { RichText } from '../../../widgets/rich_text';
import { Failed, Loading } from '../../../widgets/states';
import { canOpen } from '../../../state/catalog';
import { useLoaded } from '../../../state/payload';
import { openTool } from '../../../state/selection';
import { ChainPart } from './chain';
import {
  decodeDependencies,
  decodeDetails,
  type Dependencies,
  type EventDetails,
  type EventRef,
  type FlowNeighbour,
  type SameName,
} from '../data/details_model';
import { Place, SourceLines } from '../../source';
import type { Picked } from '../drawing/picking';
import { quoted } from '../state/search';
import type { Timeline } from '../state/timeline';

const NS = 1000;

function Row({ name, tip, children }: { name: string; tip?: string; children: ComponentChildren }): VNode {
  return (
    <>
      <dt>{name}</dt>
      <dd title={tip}>{children}</dd>
    </>
  );
}

/** "hlo_module" is "HLO module". */
function sentence(name: string): string {
  const words = name.replaceAll('_', ' ').replace(/\b(hlo|xla|tf)\b/gi, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function Facts({
  picked,
  details,
  timeline,
}: {
  picked: Picked;
  details: EventDetails | null;
  timeline: Timeline;
}): VNode {
  const { startPs, durationPs } = details ?? picked;
  const track = timeline.facts.value?.tracks.find(({ id }) => id === (details?.track ?? picked.track));
  const selfPs = details?.selfTimePs ?? null;
  return (
    <dl>
      <Row name="Start" tip={exactText(startPs, 'ps')}>
        {timeLabel(startPs, NS)}
      </Row>
      <Row name="Duration" tip={exactText(durationPs, 'ps')}>
        {format(durationPs, 'ps')}
      </Row>
      {selfPs !== null && (
        <Row name="Self time" tip={exactText(selfPs, 'ps')}>
          {format(selfPs, 'ps')}
        </Row>
      )}
      {details && details.step !== null && <Row name="Step">{details.step}</Row>}
      {track && (
        <Row name="Track">{`${track.host ? `${track.host} · ` : ''}${track.section} · ${track.name}`}</Row>
      )}
      {details?.arguments.length === 0 && <Row name="Arguments">none recorded</Row>}
      {details?.about.map(([name, value]) => (
        <Row key={name} name={sentence(name)}>
          {name === 'source' ? <Place place={value} /> : value}
        </Row>
      ))}
    </dl>
  );
}

/** What events of this name are, and where that is documented. */
function Explained({ kind, text, source }: NonNullable<EventDetails['explanation']>): VNode {
  return (
    <p class="tv-explained">
      <span class="muted">{kind}: </span>
      <RichText text={text} />{' '}
      {source.startsWith('https://') ? (
        <a href={source} target="_blank" rel="noopener noreferrer">
          Source
        </a>
      ) : (
        <small class="muted">{source}</small>
      )}
    </p>
  );
}

/** Bars over classes of duration, each as high as its count; the selected event's is marked. */
function Histogram({ same, durationPs }: { same: SameName; durationPs: number }): VNode | null {
  if (same.histogram.length < 2) return null;
  const most = Math.max(...same.histogram.map(({ n }) => n));
  const last = same.histogram.length - 1;
  return (
    <div
      class="tv-histogram"
      role="img"
      aria-label={`Durations from ${format(same.minPs, 'ps')} to ${format(same.maxPs, 'ps')}`}
    >
      <div>
        {same.histogram.map(({ fromPs, toPs, n }, i) => {
          const isOwn = durationPs >= fromPs && (durationPs < toPs || i === last);
          return (
            <span
              key={fromPs}
              class={isOwn ? 'is-own' : ''}
              data-tip={`${format(fromPs, 'ps')} to ${format(toPs, 'ps')}: ${plural(n, 'event')}`}
            >
              <i style={{ height: `${String(n > 0 ? Math.max(4, (100 * n) / most) : 0)}%` }} />
            </span>
          );
        })}
      </div>
      <small>
        <span>{format(same.histogram[0]?.fromPs, 'ps')}</span>
        <span>{format(same.histogram[last]?.toPs, 'ps')}</span>
      </small>
    </div>
  );
}

function SameNamePart({
  same,
  durationPs,
  onSearch,
}: {
  same: SameName;
  durationPs: number;
  onSearch(): void;
}): VNode {
  return (
    <div>
      <h3>All {plural(same.n, 'event')} of this name</h3>
      <dl>
        <Row name="Total" tip={exactText(same.totalPs, 'ps')}>
          {format(same.totalPs, 'ps')}
        </Row>
        <Row name="Average" tip={exactText(same.averagePs, 'ps')}>
          {format(same.averagePs, 'ps')}
        </Row>
        <Row name="Min to max" tip={`${exactText(same.minPs, 'ps')} to ${exactText(same.maxPs, 'ps')}`}>
          {format(same.minPs, 'ps')} to {format(same.maxPs, 'ps')}
        </Row>
      </dl>
      <Histogram same={same} durationPs={durationPs} />
      <button type="button" class="text-link" onClick={onSearch}>
        Find them all
      </button>
    </div>
  );
}

function distance(from: EventRef, to: EventRef): string {
  const gapPs = to.startPs - from.startPs;
  return `${format(Math.abs(gapPs), 'ps')} ${gapPs < 0 ? 'before' : 'after'}`;
}

function FlowLink({
  flow,
  details,
  timeline,
}: {
  flow: FlowNeighbour;
  details: EventDetails;
  timeline: Timeline;
}): VNode {
  const track = timeline.facts.value?.tracks.find(({ id }) => id === flow.track);
  return (
    <li class="tv-flow">
      <button
        type="button"
        class="text-link"
        title={flow.name}
        onClick={() => {
          timeline.follow(flow);
        }}
      >
        {flow.direction === 'in' ? '←' : '→'} {flow.name}
      </button>
      <span class="muted">
        {[flow.kind, track?.name, distance(details, flow)].filter(Boolean).join(' · ')}
      </span>
    </li>
  );
}

/** From the outermost inward; of two equally long ones the server's first is the inner one. */
function outermostFirst(ancestors: readonly EventRef[]): EventRef[] {
  return ancestors.toReversed().sort((a, b) => b.durationPs - a.durationPs);
}

function FlowLinks({
  title,
  note,
  flows,
  details,
  timeline,
}: {
  title: string;
  note: string;
  flows: readonly FlowNeighbour[];
  details: EventDetails;
  timeline: Timeline;
}): VNode | null {
  if (flows.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {flows.map((flow) => (
          <FlowLink
            key={`${flow.direction}${String(flow.event)}${flow.kind}`}
            flow={flow}
            details={details}
            timeline={timeline}
          />
        ))}
      </ul>
      {note && <p class="muted">{note}</p>}
    </>
  );
}

function GoTo({
  details,
  dependencies,
  timeline,
}: {
  details: EventDetails;
  dependencies: Dependencies | null;
  timeline: Timeline;
}): VNode {
  const links = details.links.filter(({ tool }) => tool === '' || canOpen(tool));
  const within = outermostFirst(details.ancestors);
  return (
    <div class="tv-goto">
      {links.length > 0 && (
        <>
          <h3>Go to</h3>
          <ul>
            {links.map((link) => (
              <li key={link.text}>
                <button
                  type="button"
                  class="text-link"
                  title={link.text}
                  onClick={() => {
                    openTool(link.tool, link.params);
                  }}
                >
                  {link.text}
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      <FlowLinks title="Causes and effects" note="" flows={details.flows} {...{ details, timeline }} />
      <FlowLinks
        title="Operands and readers"
        note={dependencies?.note ?? ''}
        flows={dependencies?.arrows ?? []}
        {...{ details, timeline }}
      />
      <h3>Within</h3>
      {within.length === 0 && <p class="muted">Nothing: it is at the top level of its track.</p>}
      <ul>
        {within.map((ancestor) => (
          <li key={ancestor.event}>
            <button
              type="button"
              class="text-link"
              title={ancestor.name}
              onClick={() => {
                timeline.follow(ancestor);
              }}
            >
              {ancestor.name}
            </button>
            <span class="muted" title={exactText(ancestor.durationPs, 'ps')}>
              {format(ancestor.durationPs, 'ps')}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Arguments({ items }: { items: EventDetails['arguments'] }): VNode {
  return (
    <div>
      <h3>Arguments</h3>
      <dl>
        {items.map(({ name, value, shown }, index) => (
          <Row key={index} name={name} {...(shown ? { tip: value } : {})}>
            {shown || value}
          </Row>
        ))}
      </dl>
    </div>
  );
}

/** The event's own times and row from the details, which are more precise than the clicked box. */
function placed(picked: Picked, details: EventDetails): Picked | null {
  const { track, depth, startPs, durationPs, name } = details;
  const isSame =
    picked.track === track &&
    picked.depth === depth &&
    picked.startPs === startPs &&
    picked.durationPs === durationPs;
  return isSame ? null : { ...picked, track, depth, startPs, durationPs, name };
}

/** Whether it is an operation of a compiled program, whose HLO states what it reads. */
function isOperation(details: EventDetails | null): boolean {
  return details?.about.some(([name]) => name === 'hlo_module' || name === 'hlo_op') ?? false;
}

/** Requested after the details, so that these need not wait for it. */
function useDependencies(
  event: number,
  isAsked: boolean,
  timeline: Timeline,
  scope: string,
): Dependencies | null {
  const loaded = useLoaded(isAsked ? `${scope}\n${String(event)}\ndependencies` : '', '', async (signal) => ({
    event,
    dependencies: decodeDependencies(await timeline.ask('dependencies', { event: String(event) }, signal)),
  }));
  return loaded.data?.event === event ? loaded.data.dependencies : null;
}

export function Details({
  picked,
  timeline,
  scope,
}: {
  picked: Picked;
  timeline: Timeline;
  scope: string;
}): VNode {
  const loaded = useLoaded(`${scope}\n${String(picked.event)}`, '', async (signal) =>
    decodeDetails(await timeline.ask('event', { event: String(picked.event) }, signal)),
  );
  const details = loaded.data && loaded.data.event === picked.event ? loaded.data : null;
  useEffect(() => {
    const better = details && placed(picked, details);
    if (better) timeline.select(better);
    if (better && better.depth !== picked.depth) timeline.reveal(better);
  }, [details]);
  const dependencies = useDependencies(picked.event, isOperation(details), timeline, scope);
  useEffect(() => {
    if (details) timeline.showFlowsOfSelected([...details.flows, ...(dependencies?.arrows ?? [])]);
  }, [details, dependencies]);
  const name = details?.name ?? picked.name;
  return (
    <aside class="tv-drawer-body tv-details" aria-label="Selected event">
      <header>
        <h2 title={name}>{name}</h2>
        {picked.nMerged > 1 && (
          <span class="muted">
            the longest of {plural(picked.nMerged, 'event')} in one box; zoom in to separate them
          </span>
        )}
        <button
          type="button"
          class="button small"
          onClick={() => {
            timeline.zoomToSelected();
          }}
          data-tip="Zoom to the event  f"
        >
          Zoom to it
        </button>
      </header>
      {details?.explanation && <Explained {...details.explanation} />}
      <div class={`tv-details-body${details?.arguments.length === 0 ? ' is-short' : ''}`}>
        <Facts picked={picked} details={details} timeline={timeline} />
        {loaded.isLoading && <Loading what="Reading the event’s arguments" bones={[14, 14, 14]} />}
        {loaded.error && (
          <Failed
            what="Details of the event"
            kind={loaded.error.kind}
            message={loaded.error.message}
            remedy={loaded.error.remedy}
            onRetry={loaded.retry}
          />
        )}
        {details && <SourceLines payload={details.payload} />}
        {details && details.arguments.length > 0 && <Arguments items={details.arguments} />}
        {details?.sameName && (
          <SameNamePart
            same={details.sameName}
            durationPs={details.durationPs}
            onSearch={() => {
              timeline.search.set(`name=${quoted(details.name)}`);
              timeline.search.list.value = 'slices';
            }}
          />
        )}
        <ChainPart event={picked.event} timeline={timeline} scope={scope} />
        {details && <GoTo details={details} dependencies={dependencies} timeline={timeline} />}
      </div>
    </aside>
  );
}
