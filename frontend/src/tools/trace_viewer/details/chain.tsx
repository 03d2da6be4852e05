/** The chain of the selected event, from the outermost call to the last effect, in the Event panel. */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { exactText, format } from '../../../base/units';
import { useLoaded } from '../../../state/payload';
import { Failed } from '../../../widgets/states';
import { decodeChain, type Chain, type ChainLink } from '../state/flows';
import type { Timeline } from '../state/timeline';

/** Of so many enclosing events in a row only the outermost and the innermost are shown at first. */
const MOST_AROUND = 3;

interface Folded {
  readonly links: readonly ChainLink[];
  readonly isFolded: boolean;
}

/** Runs of enclosing causes on one track, and single links. */
export function foldedRuns(links: readonly ChainLink[]): Folded[] {
  const runs: ChainLink[][] = [];
  for (const link of links) {
    const run = runs.at(-1);
    const last = run?.at(-1);
    if (
      run &&
      last &&
      link.kind === 'encloses' &&
      link.side === 'cause' &&
      last.side === 'cause' &&
      last.kind === 'encloses' &&
      last.track === link.track
    )
      run.push(link);
    else runs.push([link]);
  }
  return runs.flatMap((run): Folded[] =>
    run.length > MOST_AROUND
      ? [
          { links: run.slice(0, 1), isFolded: false },
          { links: run.slice(1, -1), isFolded: true },
          { links: run.slice(-1), isFolded: false },
        ]
      : [{ links: run, isFolded: false }],
  );
}

function gapText({ kind, gapPs }: ChainLink): string {
  if (kind === 'encloses') return kind;
  if (gapPs === null) return kind;
  return `${kind}, ${gapPs < 0 ? `overlapping by ${format(-gapPs, 'ps')}` : `${format(gapPs, 'ps')} between`}`;
}

function LinkLine({ link, timeline }: { link: ChainLink; timeline: Timeline }): VNode {
  const track = timeline.facts.value?.tracks.find(({ id }) => id === link.track);
  const isOwn = link.side === 'event';
  return (
    <li class={`tv-chained${isOwn ? ' is-own' : ''}`}>
      {isOwn ? (
        <b>{link.name}</b>
      ) : (
        <button
          type="button"
          class="text-link"
          title={link.name}
          onClick={() => {
            timeline.follow(link);
          }}
        >
          {link.name}
        </button>
      )}
      <span class="muted" title={exactText(link.durationPs, 'ps')}>
        {[format(link.durationPs, 'ps'), track?.name, isOwn ? '' : gapText(link)].filter(Boolean).join(' · ')}
      </span>
    </li>
  );
}

function Links({ chain, timeline }: { chain: Chain; timeline: Timeline }): VNode {
  const isWhole = useSignal(false);
  const parts = isWhole.value ? [{ links: chain.links, isFolded: false }] : foldedRuns(chain.links);
  return (
    <ol class="tv-chain">
      {parts.map(({ links, isFolded }) =>
        isFolded ? (
          <li key={`around ${String(links[0]?.event)}`}>
            <button
              type="button"
              class="text-link"
              onClick={() => {
                isWhole.value = true;
              }}
            >
              {links.length} more enclosing calls
            </button>
          </li>
        ) : (
          links.map((link) => <LinkLine key={link.event} link={link} timeline={timeline} />)
        ),
      )}
    </ol>
  );
}

export function ChainPart({
  event,
  timeline,
  scope,
}: {
  event: number;
  timeline: Timeline;
  scope: string;
}): VNode | null {
  const loaded = useLoaded(`${scope}\n${String(event)}`, '', async (signal) => ({
    event,
    chain: decodeChain(await timeline.ask('chain', { event: String(event) }, signal)),
  }));
  if (loaded.error)
    return (
      <Failed
        what="Chain of the event"
        kind={loaded.error.kind}
        message={loaded.error.message}
        remedy={loaded.error.remedy}
        onRetry={loaded.retry}
      />
    );
  const chain = loaded.data?.event === event ? loaded.data.chain : null;
  const hasArrows = chain?.links.some(({ kind }) => kind !== '' && kind !== 'encloses') ?? false;
  if (!chain || !hasArrows) return null;
  return (
    <div>
      <h3>From cause to effect</h3>
      <Links key={event} chain={chain} timeline={timeline} />
      {chain.isCut && <p class="muted">The nearest 200 each way.</p>}
    </div>
  );
}
