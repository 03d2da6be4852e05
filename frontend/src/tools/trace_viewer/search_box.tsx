/**
 * The search field: counts matches while the user types, next and previous, and whether to search arguments
 * too.
 */

import type { VNode } from 'preact';
import { asApiError } from '../../state/payload';
import { Icon } from './icons';
import type { Search } from './search';
import type { Timeline } from './timeline';

const COUNT = new Intl.NumberFormat('en-US');

function statusOf(search: Search): string {
  if (search.error.value) return asApiError(search.error.value).message;
  const page = search.page.value;
  if (!search.query.value.text.trim()) return '';
  if (!page || page.query !== search.query.value) return '…';
  if (page.nMatches === 0) return 'No match';
  const index = search.at.value;
  return index === null
    ? COUNT.format(page.nMatches)
    : `${COUNT.format(index + 1)} of ${COUNT.format(page.nMatches)}`;
}

export function SearchBox({ timeline, onList }: { timeline: Timeline; onList(): void }): VNode {
  const { search } = timeline;
  const query = search.query.value;
  const status = statusOf(search);
  const hasMatches = (search.page.value?.nMatches ?? 0) > 0;
  const go = (step: 1 | -1): void => {
    void search.go(step, timeline.camera.view.startPs);
  };
  return (
    <div class="tv-search" role="search">
      <input
        class="field"
        type="search"
        data-key="search"
        placeholder="Search events  /"
        aria-label="Search event names"
        spellcheck={false}
        value={query.text}
        onInput={(event) => {
          search.set({ ...query, text: event.currentTarget.value }, true);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter') go(event.shiftKey ? -1 : 1);
          if (event.key === 'Escape') {
            event.preventDefault();
            event.stopPropagation();
            event.currentTarget.blur();
          }
        }}
      />
      {query.text.trim() !== '' && (
        <>
          <button
            type="button"
            class="tv-status text-link"
            role="status"
            data-tip={search.error.value ? status : 'List the names and matches'}
            onClick={onList}
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
          <label class="tv-check" data-tip="Also search the events' recorded arguments (slower)">
            <input
              type="checkbox"
              checked={query.hasArguments}
              onChange={(event) => {
                search.set({ ...query, hasArguments: event.currentTarget.checked });
              }}
            />
            arguments
          </label>
        </>
      )}
    </div>
  );
}
