/**
 * Search over all events of the shown hosts: the server counts and lists them, a few thousand at a time; next
 * and previous walk the list and beyond it.
 */

import { signal } from '@preact/signals';
import { decodeSearch, type EventRef, type SearchAnswer } from './details_model';
import type { Fetch } from './loader';
import type { Highlight } from './scene';

const PAGE = 5000;
/**
 * Stepping back from the first match to the last lists all matches up to this number; with more, it stops at
 * the first.
 */
const MAX_LISTED = 100_000;
const TYPING_MS = 140;

export interface Query {
  readonly text: string;
  readonly hasArguments: boolean;
}

/** A page of the matches; `first` is the index of its first match among all. */
export interface Page extends SearchAnswer {
  readonly query: Query;
  readonly first: number;
}

export class Search {
  readonly query = signal<Query>({ text: '', hasArguments: false });
  readonly page = signal<Page | null>(null);
  /** The index of the current match among all, from 0; null: none was visited. */
  readonly at = signal<number | null>(null);
  readonly isBusy = signal(false);
  readonly error = signal<unknown>(null);
  private timer = 0;
  private abort: AbortController | null = null;
  private loading: Promise<void> = Promise.resolve();

  constructor(
    private readonly fetch: Fetch,
    private readonly onFound: () => void,
    private readonly reveal: (match: EventRef) => void,
  ) {}

  /** The matches to mark; all else is dimmed. null: there is no search. */
  get highlight(): Highlight | null {
    const page = this.page.value;
    if (!page || page.nMatches === 0) return null;
    const events = new Set(page.query.hasArguments ? page.matches.map(({ event }) => event) : []);
    return { text: page.query.text.toLowerCase(), events, matches: page.matches };
  }

  /** `isTyping`: more input may follow. */
  set(query: Query, isTyping = false): void {
    const before = this.query.value;
    if (before.text === query.text && before.hasArguments === query.hasArguments) return;
    this.query.value = query;
    this.at.value = null;
    clearTimeout(this.timer);
    this.abort?.abort();
    if (query.text.trim() === '') {
      this.page.value = null;
      this.error.value = null;
      this.isBusy.value = false;
      this.onFound();
      return;
    }
    this.isBusy.value = true;
    this.timer = window.setTimeout(
      () => {
        this.loading = this.load({}, () => 0);
      },
      isTyping ? TYPING_MS : 0,
    );
  }

  private async load(more: Record<string, string>, firstOf: (answer: SearchAnswer) => number): Promise<void> {
    const query = this.query.value;
    const abort = new AbortController();
    this.abort = abort;
    this.isBusy.value = true;
    try {
      const params = {
        text: query.text,
        limit: String(PAGE),
        ...(query.hasArguments ? { in_args: '1' } : {}),
        ...more,
      };
      const answer = decodeSearch(await this.fetch('search', params, abort.signal));
      if (abort.signal.aborted) return;
      this.page.value = { ...answer, query, first: firstOf(answer) };
      this.error.value = null;
    } catch (error) {
      if (abort.signal.aborted) return;
      this.page.value = null;
      this.error.value = error;
    }
    this.isBusy.value = false;
    this.onFound();
  }

  /**
   * Goes to the next or previous match; the first time to the first match at or after `fromPs` (or the last
   * before it). Wraps around.
   */
  async go(step: 1 | -1, fromPs: number): Promise<void> {
    if (this.page.value?.query !== this.query.value) {
      // Enter came before the answer: send the request at once, then go.
      clearTimeout(this.timer);
      if (this.query.value.text.trim() === '') return;
      this.loading = this.load({}, () => 0);
    }
    await this.loading;
    const page = this.page.value;
    if (!page || page.nMatches === 0) return;
    await this.goTo(this.at.value === null ? startOf(page, step, fromPs) : this.at.value + step);
  }

  async goTo(place: number): Promise<void> {
    const page = this.page.value;
    if (!page || page.nMatches === 0) return;
    const wrapped = (place + page.nMatches) % page.nMatches;
    await this.turnTo(wrapped, page);
    const now = this.page.value;
    const match = now?.matches[wrapped - now.first];
    if (!match) return;
    this.at.value = wrapped;
    this.reveal(match);
  }

  /** Loads the page that contains an index: the next, the previous, the first, or all. */
  private async turnTo(place: number, { first, matches, nMatches }: Page): Promise<void> {
    if (place >= first && place < first + matches.length) return;
    const last = matches.at(-1);
    const head = matches[0];
    if (place === 0) await this.load({}, () => 0);
    else if (place === first + matches.length && last)
      await this.load({ after_event: String(last.event) }, () => first + matches.length);
    else if (head && place === first - 1)
      await this.load({ before_event: String(head.event) }, (answer) => first - answer.matches.length);
    else if (nMatches <= MAX_LISTED) await this.load({ limit: String(nMatches) }, () => 0);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.abort?.abort();
  }
}

function startOf(page: Page, step: 1 | -1, fromPs: number): number {
  const after = page.matches.findIndex(({ startPs }) => startPs >= fromPs);
  const next = after < 0 ? page.matches.length : after;
  return page.first + (step > 0 ? (after < 0 ? 0 : next) : next - 1);
}
