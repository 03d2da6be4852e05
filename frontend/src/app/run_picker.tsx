/** The chosen run as a button; it opens the list of runs, newest first, with a search. */
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { RunCard, RunInfo } from '../api/types';
import { matches, wordsOf } from '../base/search';
import { dateText, format, plural, SPACE } from '../base/units';
import { loadRuns, runs } from '../state/catalog';
import { askForCard, cards, forgetCards } from '../state/run_facts';
import { choose, run } from '../state/selection';
import { Breakable } from '../widgets/breakable';
import { useDismiss } from '../widgets/popup';

/** More runs are reachable by searching. */
const LISTED = 200;
const STATE_WORDS = {
  ok: '',
  hlo: 'HLO only',
  memory: '',
  legacy: 'saved pages',
  unsupported: 'not supported',
  empty: 'empty',
  unreadable: 'unreadable',
} as const;

function deviceText({ device, n_devices: nDevices }: RunCard): string {
  return nDevices > 1 ? `${nDevices}${SPACE}×${SPACE}${device}` : device;
}

/** When, how many hosts or snapshots, which devices and framework, as far as that is known. */
export function runNote(info: RunInfo, card?: RunCard): string {
  const parts = [
    dateText(info.captured_at),
    info.n_hosts ? plural(info.n_hosts, info.state === 'memory' ? 'memory snapshot' : 'host') : '',
    card ? deviceText(card) : '',
    card?.framework ?? '',
    STATE_WORDS[info.state],
  ];
  return parts.filter(Boolean).join(' · ');
}

/** Which part of a run cannot be read; empty: none, as far as that is known. */
export function damageOf(info: RunInfo, card: RunCard | undefined): string {
  const nDamaged = card?.damaged.length ?? 0;
  if (info.n_hosts > 0 && (nDamaged >= info.n_hosts || info.size_bytes === 0)) return 'damaged';
  return nDamaged ? `${nDamaged} of ${plural(info.n_hosts, 'host')} damaged` : '';
}

function Note({ info }: { info: RunInfo }): VNode {
  const card = cards.value.get(info.run);
  const damage = damageOf(info, card);
  const size = format(info.size_bytes, 'bytes');
  return (
    <small data-tip={[size, ...(card?.damaged ?? []).map((host) => `Cannot be read: ${host}`)].join('\n')}>
      {runNote(info, card)}
      {damage && <span class="damaged"> · {damage}</span>}
    </small>
  );
}

/** Requests the cards of runs as they come into view. */
function useCardsInView(list: { current: HTMLUListElement | null }, listed: readonly RunInfo[]): void {
  useEffect(() => {
    const items = list.current;
    if (!items) return;
    const watch = new IntersectionObserver(
      (entries) => {
        for (const entry of entries)
          if (entry.isIntersecting) askForCard((entry.target as HTMLElement).dataset['run'] ?? '');
      },
      { root: items },
    );
    for (const item of items.children) watch.observe(item);
    return () => watch.disconnect();
  }, [listed.map((info) => info.run).join('\n')]);
}

export function findRuns(all: readonly RunInfo[], query: string): RunInfo[] {
  const words = wordsOf(query);
  return all.filter((info) => matches(`${info.run} ${dateText(info.captured_at)}`, words));
}

function RunList({ close }: { close: () => void }): VNode {
  const [query, setQuery] = useState('');
  const [activeRow, setActiveRow] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const matchingRuns = findRuns(runs.value?.runs ?? [], query);
  const listed = matchingRuns.slice(0, LISTED);
  useEffect(() => {
    input.current?.focus();
    setActiveRow(
      Math.max(
        0,
        listed.findIndex((info) => info.run === run.value),
      ),
    );
  }, []);
  useEffect(() => list.current?.children[activeRow]?.scrollIntoView?.({ block: 'nearest' }), [activeRow]);
  useCardsInView(list, listed);
  const refresh = (): void => {
    forgetCards();
    void loadRuns(true);
  };
  const pick = (info: RunInfo | undefined): void => {
    if (!info) return;
    close();
    if (info.run !== run.value) choose({ run: info.run, hosts: [], params: {} });
  };
  const onKey = (event: KeyboardEvent): void => {
    const to = {
      ArrowDown: activeRow + 1,
      ArrowUp: activeRow - 1,
      PageDown: activeRow + 8,
      PageUp: activeRow - 8,
    }[event.key];
    if (event.key === 'Enter') pick(listed[activeRow]);
    else if (to === undefined) return;
    else setActiveRow(Math.max(0, Math.min(listed.length - 1, to)));
    event.preventDefault();
  };
  return (
    <div class="run-list">
      <input
        ref={input}
        class="field"
        type="search"
        role="combobox"
        aria-label="Search runs"
        aria-expanded="true"
        aria-controls="run-options"
        aria-activedescendant={listed[activeRow] ? `run-${activeRow}` : undefined}
        placeholder={`Search ${plural(runs.value?.runs.length ?? 0, 'run')}`}
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setActiveRow(0);
        }}
        onKeyDown={onKey}
      />
      <ul id="run-options" role="listbox" aria-label="Runs" ref={list}>
        {listed.map((info, i) => (
          <li
            key={info.run}
            id={`run-${i}`}
            role="option"
            aria-selected={info.run === run.value}
            data-run={info.run}
            class={i === activeRow ? 'at' : ''}
            onClick={() => pick(info)}
            onPointerMove={() => setActiveRow(i)}
          >
            <b>{info.run}</b>
            <Note info={info} />
          </li>
        ))}
      </ul>
      <p class="run-list-foot">
        <span>
          {matchingRuns.length
            ? matchingRuns.length > LISTED
              ? `${LISTED} of ${matchingRuns.length}: search for more`
              : ''
            : 'No matching run.'}
        </span>
        <button type="button" class="button small" onClick={refresh}>
          Refresh
        </button>
      </p>
    </div>
  );
}

export function RunPicker(): VNode {
  const [isOpen, setOpen] = useState(false);
  const anchor = useRef<HTMLDivElement>(null);
  const close = (): void => setOpen(false);
  useDismiss(anchor, isOpen, close);
  const info = runs.value?.runs.find((candidate) => candidate.run === run.value);
  return (
    <div class="run-picker" ref={anchor}>
      <button
        type="button"
        class="run"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <span class="hidden-text">Run </span>
        <b data-tip={run.value}>{run.value ? <Breakable name={run.value} /> : runs.value ? 'No run' : ' '}</b>
        <i aria-hidden="true">▾</i>
        <span class="hidden-text"> Choose another. </span>
        {info ? (
          <Note info={info} />
        ) : (
          <small>{run.value && runs.value ? 'not in this directory' : ' '}</small>
        )}
      </button>
      {isOpen && <RunList close={close} />}
    </div>
  );
}
