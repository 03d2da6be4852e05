/** The query line: completes fields and values, counts matches while the user types, next and previous. */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import type { ApiError } from '../../../api/client';
import { asApiError, useLoaded } from '../../../state/payload';
import { completed, completionsAt, type Completion, type Completions, type FieldValues } from './completion';
import { Icon } from '../../../widgets/icons';
import { decodeFields, decodeSlices, type QueryField } from '../data/query_model';
import { ColoredText } from './colored_text';
import { positionOf } from './tokens';
import type { Search } from '../state/search';
import type { Timeline } from '../state/timeline';

const COUNT = new Intl.NumberFormat('en-US');
const THREADS: readonly string[] = ['python', 'thread', 'tf_data'];

function statusOf(search: Search, nInView: number | null): string {
  if (search.error.value) return 'Not a query';
  const page = search.page.value;
  if (!search.isActive) return '';
  if (search.isStopped.value) return 'Stopped';
  if (!page || page.text !== search.text.value) return '…';
  if (page.nMatches === 0) return 'No match';
  const index = search.at.value;
  const total = COUNT.format(page.nMatches);
  const place = index === null ? total : `${COUNT.format(index + 1)} of ${total}`;
  return nInView === null ? place : `${place} · ${COUNT.format(nInView)} in view`;
}

/** The number of matches in the window, once it rests; null: not known, or the window is the whole trace. */
function useInView(timeline: Timeline, scope: string): number | null {
  const { search, camera } = timeline;
  const { startPs, endPs } = camera.settled.value;
  const isWhole = startPs <= 0 && endPs >= timeline.durationPs;
  const isCounted = search.page.value?.text === search.text.value && (search.page.value?.nMatches ?? 0) > 0;
  const window = { start_ps: String(Math.floor(startPs)), end_ps: String(Math.ceil(endPs)) };
  const params = { ...search.params, ...window, limit: '1' };
  const key = isWhole || !isCounted ? '' : JSON.stringify(params);
  const loaded = useLoaded(key && `${scope}\n${key}`, scope + search.text.value, async (signal) =>
    decodeSlices(await timeline.ask('slices', params, signal)),
  );
  return key ? (loaded.data?.nMatches ?? null) : null;
}

function valuesOf(timeline: Timeline): FieldValues {
  const tracks = timeline.facts.value?.tracks ?? [];
  const distinct = (texts: string[]): string[] => [...new Set(texts)];
  return new Map([
    ['track', distinct(tracks.map(({ name }) => name))],
    ['thread', distinct(tracks.filter(({ kind }) => THREADS.includes(kind)).map(({ name }) => name))],
    ['section', distinct(tracks.map(({ section }) => section))],
    ['kind', distinct(tracks.map(({ kind }) => kind))],
    ['host', distinct(tracks.map(({ host }) => host))],
  ]);
}

function Suggestions({
  completions,
  chosen,
  error,
  onChoose,
}: {
  completions: Completions;
  chosen: number;
  error: ApiError | null;
  onChoose(item: Completion): void;
}): VNode | null {
  if (completions.items.length === 0 && !error) return null;
  return (
    <div class="tv-suggest">
      {error && (
        <p class="tv-suggest-error" role="alert">
          {error.message} <span>{error.remedy}</span>
        </p>
      )}
      {completions.items.length > 0 && (
        <ul id="tv-suggestions" role="listbox" aria-label="Completions">
          {completions.items.map((item, index) => (
            <li
              key={item.text}
              id={`tv-suggestion-${String(index)}`}
              role="option"
              aria-selected={index === chosen}
              onPointerDown={(event) => {
                event.preventDefault(); // The field keeps the focus.
                onChoose(item);
              }}
            >
              <code>{item.text.trim()}</code>
              <span>{item.meaning}</span>
            </li>
          ))}
        </ul>
      )}
      <p class="tv-suggest-hint">
        <kbd>Tab</kbd> inserts · <code>:</code> contains · <code>=</code> exactly · <code>~</code> regex ·{' '}
        <code>-</code> excludes · <code>OR</code>
      </p>
    </div>
  );
}

/** What can be written at the caret; values of the fields are loaded once the line has the focus. */
function useCompletions(timeline: Timeline, scope: string, caret: number, hasFocus: boolean): Completions {
  const fields = useLoaded(hasFocus ? scope : '', scope, async (signal) =>
    decodeFields(await timeline.ask('fields', {}, signal)),
  ).data as readonly QueryField[] | null;
  const values = useMemo(() => valuesOf(timeline), [timeline.facts.value]);
  const text = timeline.search.text.value;
  return completionsAt(text, Math.min(caret, text.length), fields ?? [], values);
}

function QueryField({
  timeline,
  scope,
  hint,
}: {
  timeline: Timeline;
  scope: string;
  hint: ApiError | null;
}): VNode {
  const { search } = timeline;
  const input = useRef<HTMLInputElement>(null);
  const caret = useSignal(0);
  const chosen = useSignal(0);
  const isOpen = useSignal(false);
  const hasFocus = useSignal(false);
  const text = search.text.value;
  const completions = useCompletions(timeline, scope, caret.value, hasFocus.value);
  const isShown = isOpen.value && hasFocus.value;
  const isListed = isShown && completions.items.length > 0;
  const choose = (item: Completion): void => {
    const next = completed(text, completions, item);
    // Now, not after the next render: the user types on.
    if (input.current) input.current.value = next.text;
    input.current?.setSelectionRange(next.caret, next.caret);
    search.set(next.text, true);
    caret.value = next.caret;
    chosen.value = 0;
  };
  const note = (element: HTMLInputElement): void => {
    caret.value = element.selectionStart ?? element.value.length;
  };
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLInputElement }): void => {
    const item = isShown ? completions.items[chosen.value] : undefined;
    if (event.key === 'Tab' && item && !event.shiftKey) {
      event.preventDefault();
      choose(item);
    } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && completions.items.length > 0) {
      event.preventDefault();
      const n = completions.items.length;
      if (isShown) chosen.value = (chosen.value + (event.key === 'ArrowDown' ? 1 : n - 1)) % n;
      isOpen.value = true;
    } else if (event.key === 'Enter') {
      isOpen.value = false;
      void search.go(event.shiftKey ? -1 : 1, timeline.camera.view.startPs);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      if (isListed) isOpen.value = false;
      else event.currentTarget.blur();
    }
  };
  return (
    <div class="tv-query">
      <ColoredText text={text} wrongAt={hint ? positionOf(hint.message) : null} field={input} />
      <input
        ref={input}
        class="field"
        type="search"
        role="combobox"
        data-key="search"
        placeholder="Find events: dur>1ms name:dot  /"
        aria-label="Find events"
        aria-autocomplete="list"
        aria-expanded={isListed}
        aria-controls="tv-suggestions"
        aria-activedescendant={isListed ? `tv-suggestion-${String(chosen.value)}` : undefined}
        aria-invalid={search.error.value ? true : undefined}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onFocus={() => {
          hasFocus.value = true;
        }}
        onBlur={() => {
          hasFocus.value = isOpen.value = false;
        }}
        onInput={(event) => {
          note(event.currentTarget);
          chosen.value = 0;
          isOpen.value = true;
          search.set(event.currentTarget.value, true);
        }}
        onKeyUp={(event) => {
          note(event.currentTarget);
        }}
        onClick={(event) => {
          note(event.currentTarget);
          isOpen.value = true;
        }}
        onKeyDown={onKeyDown}
      />
      {isShown && (
        <Suggestions completions={completions} chosen={chosen.value} error={hint} onChoose={choose} />
      )}
    </div>
  );
}

/** What a query that takes longer is waiting for, for how long, and a way out. */
function Slow({ search }: { search: Search }): VNode | null {
  const seconds = search.waitingS.value;
  if (seconds === 0) return null;
  return (
    <span class="tv-slow" role="status">
      {search.readsArguments ? 'Reading arguments' : 'Searching'}, {seconds} s
      <button
        type="button"
        class="button small"
        data-tip="Stop waiting; Enter asks again"
        onClick={() => {
          search.stop();
        }}
      >
        Cancel
      </button>
    </span>
  );
}

export function SearchBox({ timeline, scope }: { timeline: Timeline; scope: string }): VNode {
  const { search } = timeline;
  const nInView = useInView(timeline, scope);
  const error = search.error.value ? asApiError(search.error.value) : null;
  const status = statusOf(search, nInView);
  const hasMatches = (search.page.value?.nMatches ?? 0) > 0;
  const go = (step: 1 | -1): void => {
    void search.go(step, timeline.camera.view.startPs);
  };
  return (
    <div class="tv-search" role="search">
      <QueryField timeline={timeline} scope={scope} hint={error} />
      {search.isActive && <Slow search={search} />}
      {search.isActive && (
        <>
          <button
            type="button"
            class={`tv-status text-link${error ? ' is-wrong' : ''}`}
            role="status"
            data-tip={
              error
                ? `${error.message} ${error.remedy}`
                : search.isStopped.value
                  ? 'Enter asks again'
                  : 'List the matches'
            }
            aria-expanded={search.list.value !== null}
            onClick={() => {
              search.list.value = search.list.value === null ? 'slices' : null;
            }}
          >
            {status}
          </button>
          <button
            type="button"
            class="button small"
            aria-label="Previous match"
            data-tip="Previous match  N"
            disabled={!hasMatches}
            onClick={() => {
              go(-1);
            }}
          >
            <Icon name="up" />
          </button>
          <button
            type="button"
            class="button small"
            aria-label="Next match"
            data-tip="Next match  n"
            disabled={!hasMatches}
            onClick={() => {
              go(1);
            }}
          >
            <Icon name="down" />
          </button>
        </>
      )}
    </div>
  );
}
