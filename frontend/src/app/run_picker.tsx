/** The chosen run as a button; it opens the list of runs, newest first, with a search. */
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { RunInfo } from '../api/types';
import { matches, wordsOf } from '../base/search';
import { dateText, format, plural } from '../base/units';
import { loadRuns, runs } from '../state/catalog';
import { choose, run } from '../state/selection';
import { Breakable } from '../widgets/breakable';
import { useDismiss } from '../widgets/popup';

/** More runs are reachable by searching. */
const LISTED = 200;
const STATE_WORDS = {
  ok: '',
  hlo: 'HLO only',
  legacy: 'old format',
  unsupported: 'not supported',
  empty: 'empty',
  unreadable: 'unreadable',
} as const;

export function runNote(info: RunInfo): string {
  const parts = [
    dateText(info.captured_at),
    info.n_hosts ? plural(info.n_hosts, 'host') : '',
    format(info.size_bytes, 'bytes'),
    STATE_WORDS[info.state],
  ];
  return parts.filter(Boolean).join(' · ');
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
            class={i === activeRow ? 'at' : ''}
            onClick={() => pick(info)}
            onPointerMove={() => setActiveRow(i)}
          >
            <b>{info.run}</b>
            <small>{runNote(info)}</small>
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
        <button type="button" class="button small" onClick={() => void loadRuns(true)}>
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
        aria-label={`Run ${run.value}. Choose another`}
        onClick={() => setOpen(!isOpen)}
      >
        <b data-tip={run.value}>{run.value ? <Breakable name={run.value} /> : runs.value ? 'No run' : ' '}</b>
        <i aria-hidden="true">▾</i>
        <small>{info ? runNote(info) : run.value && runs.value ? 'not in this directory' : ' '}</small>
      </button>
      {isOpen && <RunList close={close} />}
    </div>
  );
}
