/**
 * The hosts of the run: several at once or one, depending on the tool; with a filter where there are many.
 */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { HostInfo, ToolInfo } from '../api/types';
import { matches, wordsOf } from '../base/search';
import { format } from '../base/units';
import { shown } from '../state/payload';
import { choose, hosts, run } from '../state/selection';
import { Breakable } from '../widgets/breakable';
import { sentence } from '../widgets/definition';

const FILTER_FROM = 11;
const BLOCK = 32;

/** The hosts chosen after a click on one; the empty list means all of them, and at least one always stays. */
export function toggled(all: readonly string[], chosen: readonly string[], host: string): string[] {
  const on = new Set(chosen.length ? chosen : all);
  if (!on.delete(host)) on.add(host);
  if (!on.size) return [...chosen];
  return on.size === all.length ? [] : all.filter((name) => on.has(name));
}

/** Hosts in blocks: those scrolled out of sight cost the rest of the page no layout work. */
function blocksOf(all: readonly HostInfo[]): HostInfo[][] {
  return Array.from({ length: Math.ceil(all.length / BLOCK) }, (_, i) =>
    all.slice(i * BLOCK, (i + 1) * BLOCK),
  );
}

/** A host whose file cannot be read: neither ticked nor to be chosen; it says why. */
function BadHost({ host, failure }: { host: HostInfo; failure: string }): VNode {
  return (
    <div class="host bad">
      <label data-tip={sentence(failure)}>
        <input type="checkbox" checked={false} disabled />
        {/* The checkbox cannot have the focus, so the name has it. */}
        <span tabIndex={0}>
          <Breakable name={host.host} />
        </span>
      </label>
      <small>unreadable</small>
    </div>
  );
}

/** Why a host cannot be read: as the run says, or because the answer on screen lacks it. */
function failureOf({ host, failure }: HostInfo): string {
  if (failure) return failure;
  const asked = !hosts.value.length || hosts.value.includes(host);
  const answer = shown.value?.payload;
  if (!answer || answer.run !== run.value || !asked || answer.hosts.includes(host)) return '';
  const found = answer.diagnostics.find(
    ({ severity, message }) => severity === 'error' && message.includes(host),
  );
  return found?.message ?? '';
}

function ManyHost({ host, all }: { host: HostInfo; all: readonly string[] }): VNode {
  const chosen = hosts.value;
  const failure = failureOf(host);
  if (failure) return <BadHost host={host} failure={failure} />;
  return (
    <div class="host">
      <label>
        <input
          type="checkbox"
          checked={!chosen.length || chosen.includes(host.host)}
          onChange={() => choose({ hosts: toggled(all, chosen, host.host) })}
        />
        <span data-tip={host.host}>
          <Breakable name={host.host} />
        </span>
      </label>
      <button
        type="button"
        class="only"
        aria-label={`Only ${host.host}`}
        onClick={() => choose({ hosts: [host.host] })}
      >
        only
      </button>
      <small>{format(host.size_bytes, 'bytes')}</small>
    </div>
  );
}

function OneHost({ host, isOn }: { host: HostInfo; isOn: boolean }): VNode {
  return (
    <div class="host">
      <label>
        <input type="radio" name="host" checked={isOn} onChange={() => choose({ hosts: [host.host] })} />
        <span data-tip={host.host}>
          <Breakable name={host.host} />
        </span>
      </label>
      <small>{format(host.size_bytes, 'bytes')}</small>
    </div>
  );
}

interface HostListProps {
  all: readonly HostInfo[];
  mode: ToolInfo['hosts'];
  /** What a file of the run is, as a plural. */
  noun?: 'hosts' | 'snapshots';
}

export function HostList({ all, mode, noun = 'hosts' }: HostListProps): VNode | null {
  const [query, setQuery] = useState('');
  if (!all.length) return null;
  const names = all.map(({ host }) => host);
  const words = wordsOf(query);
  const listed = all.filter(({ host }) => matches(host, words));
  const one = hosts.value[0] ?? names[0];
  const title = noun === 'hosts' ? 'Hosts' : 'Snapshots';
  return (
    <section class="hosts" aria-label={`${title} to show`}>
      <h2>
        {title} <span>{all.length}</span>
      </h2>
      {all.length >= FILTER_FROM && (
        <input
          class="field"
          type="search"
          placeholder={`Filter ${noun}`}
          aria-label={`Filter ${noun}`}
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
      )}
      <div class="host-scroll">
        {mode === 'many' && all.length > 1 && !query && (
          <div class="host">
            <label>
              <input
                type="checkbox"
                checked={!hosts.value.length}
                onClick={(event) => (hosts.value.length ? choose({ hosts: [] }) : event.preventDefault())}
              />
              <span>All {noun}</span>
            </label>
          </div>
        )}
        {blocksOf(listed).map((block) => (
          <div class="host-block" key={block[0]?.host} style={{ '--hosts': block.length }}>
            {block.map((host) =>
              mode === 'many' ? (
                <ManyHost key={host.host} host={host} all={names} />
              ) : (
                <OneHost key={host.host} host={host} isOn={host.host === one} />
              ),
            )}
          </div>
        ))}
        {!listed.length && <p class="muted">No matching {noun.slice(0, -1)}.</p>}
      </div>
    </section>
  );
}
