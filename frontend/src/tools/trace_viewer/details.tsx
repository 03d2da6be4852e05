/** The drawer below the timeline: the selected event's times, what it is within, and all its arguments. */

import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { exactText, format, plural } from '../../base/units';
import { timeLabel } from '../../canvas/ticks';
import { Failed, Loading } from '../../widgets/states';
import { useLoaded } from '../../state/payload';
import type { Payload } from '../../api/types';
import { decodeDetails, type Ancestor, type EventDetails, type Track } from './model';
import type { Picked } from './picking';

const NS = 1000;

function Time({ ps }: { ps: number }): VNode {
  return <span title={exactText(ps, 'ps')}>{timeLabel(ps, NS)}</span>;
}

function Row({ name, children }: { name: string; children: VNode | string }): VNode {
  return <><dt>{name}</dt><dd>{children}</dd></>;
}

/** "full_name" is "Full name". */
function sentence(name: string): string {
  return (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll('_', ' ');
}

/** Times as far as the box alone tells them; the rest once the details are here. */
function Facts({ picked, details, track }: { picked: Picked; details: EventDetails | null; track: Track | undefined }): VNode {
  const selfPs = details?.selfTimePs ?? null;
  return (
    <dl>
      <Row name="Start"><Time ps={details?.startPs ?? picked.startPs} /></Row>
      <Row name="Duration"><span title={exactText(details?.durationPs ?? picked.durationPs, 'ps')}>{format(details?.durationPs ?? picked.durationPs, 'ps')}</span></Row>
      {selfPs !== null && <Row name="Self time"><span title={exactText(selfPs, 'ps')}>{format(selfPs, 'ps')}</span></Row>}
      {details && details.step !== null && <Row name="Step">{details.step}</Row>}
      {track && <Row name="Track">{`${track.section} · ${track.name}`}</Row>}
      {details?.about.map(([name, value]) => <Row key={name} name={sentence(name)}>{value}</Row>)}
    </dl>
  );
}

/** From the outermost inward; of two that are equally long the server's first is the inner one. */
function outermostFirst(ancestors: readonly Ancestor[]): Ancestor[] {
  return ancestors.toReversed().sort((a, b) => b.durationPs - a.durationPs);
}

/** The ancestors as a path to click. */
function Within({ ancestors, onSelect }: { ancestors: readonly Ancestor[]; onSelect(ancestor: Ancestor): void }): VNode {
  const ordered = outermostFirst(ancestors);
  if (ordered.length === 0) return <p class="muted">Nothing: it is at the top of its track.</p>;
  return (
    <ol>
      {ordered.map((ancestor) => (
        <li key={ancestor.event}>
          <button type="button" class="tv-link" onClick={() => { onSelect(ancestor); }}>{ancestor.name}</button>
          <span title={exactText(ancestor.durationPs, 'ps')}>{format(ancestor.durationPs, 'ps')}</span>
        </li>
      ))}
    </ol>
  );
}

export interface DetailsProps {
  readonly picked: Picked;
  readonly tracks: readonly Track[];
  /** What tells this host's events from another's. */
  readonly scope: string;
  fetchEvent(event: number, signal: AbortSignal): Promise<Payload>;
  onSelect(picked: Picked): void;
  /** The details say that the event is in another row than thought. */
  onPlace(picked: Picked): void;
  onZoom(): void;
  onClose(): void;
}

export function Details({ picked, tracks, scope, fetchEvent, onSelect, onPlace, onZoom, onClose }: DetailsProps): VNode {
  const loaded = useLoaded(`${scope}\n${String(picked.event)}`, '', async (signal) => decodeDetails(await fetchEvent(picked.event, signal)));
  const details = loaded.data && loaded.data.event === picked.event ? loaded.data : null;
  useEffect(() => {
    if (details && (details.depth !== picked.depth || details.track !== picked.track)) onPlace({ ...picked, track: details.track, depth: details.depth });
  }, [details]);
  const track = tracks.find(({ id }) => id === (details?.track ?? picked.track));
  const select = (ancestor: Ancestor): void => {
    const depth = outermostFirst(details?.ancestors ?? []).indexOf(ancestor);
    onSelect({ ...ancestor, track: picked.track, depth: Math.max(0, depth), nMerged: 1 });
  };
  return (
    <aside class="tv-details" aria-label="Selected event">
      <header>
        <h2 title={details?.name ?? picked.name}>{details?.name ?? picked.name}</h2>
        {picked.nMerged > 1 && <span class="muted">the longest of {plural(picked.nMerged, 'event')} in this box</span>}
        <button type="button" class="button" onClick={onZoom} title="Zoom to the event (f)">Zoom to it</button>
        <button type="button" class="button" onClick={onClose} aria-label="Close the details" title="Deselect (Esc)">✕</button>
      </header>
      <div class="tv-details-body">
        <Facts picked={picked} details={details} track={track} />
        {loaded.isLoading && <Loading what="Reading the event’s arguments" bones={[14, 14, 14]} />}
        {loaded.error && <Failed what="Details of the event" kind={loaded.error.kind} message={loaded.error.message} remedy={loaded.error.remedy} onRetry={loaded.retry} />}
        {details && <div><h3>Within</h3><Within ancestors={details.ancestors} onSelect={select} /></div>}
        {details && <div><h3>Arguments</h3><Arguments items={details.arguments} /></div>}
      </div>
    </aside>
  );
}

function Arguments({ items }: { items: readonly (readonly [string, string])[] }): VNode {
  if (items.length === 0) return <p class="muted">None were recorded.</p>;
  return <dl>{items.map(([name, value], index) => <Row key={index} name={name}>{value}</Row>)}</dl>;
}
