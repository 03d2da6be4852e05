/**
 * The query line's state: the query, the number of its matches, the walk through them, and where each window
 * has hits. The server evaluates; here are pages of matches in order of time.
 */

import { signal } from '@preact/signals';
import type { EventRef } from '../data/details_model';
import type { Fetch } from '../data/loader';
import { requestParams, type TraceWindow } from '../data/model';
import { decodeHits, decodeSlices, type Slices, type WindowHits } from '../data/query_model';

/** Matches that are loaded at once for the walk. */
const PAGE = 500;
const TYPING_MS = 140;
/** Conditions for which the server may have to read the file again. */
const ARGUMENTS = /(?:^|[\s(-])(?:arg[.:=~<>]|any[:=~])/;

/** Which tracks' matches count: `auto` those of derived ones only if there are no others. */
export type Of = 'auto' | 'recorded' | 'derived';

/** The stretch that the list of results is about. */
export type Within = 'trace' | 'window' | 'mark';

/** The matches that are loaded; `text` is the query they answer. */
export interface Page extends Slices {
  readonly text: string;
}

export class Search {
  readonly text = signal('');
  readonly of = signal<Of>('auto');
  readonly page = signal<Page | null>(null);
  /** The index of the current match among all, from 0; null: none was visited. */
  readonly at = signal<number | null>(null);
  readonly isBusy = signal(false);
  readonly error = signal<unknown>(null);
  /** Whole seconds that an answer has been waited for, 0 in the first one. */
  readonly waitingS = signal(0);
  /** The user no longer wanted to wait. */
  readonly isStopped = signal(false);
  /** The group in the list that is unfolded; null: none. */
  readonly opened = signal<string | null>(null);
  /** What the list shows: `slices`, or the key of its groups; null: it is closed. */
  readonly list = signal<string | null>(null);
  readonly within = signal<Within>('trace');
  /** Names of arguments that the list shows, separated by commas. */
  readonly columns = signal('');
  private timer = 0;
  private abort = new AbortController();
  private loading: Promise<void> = Promise.resolve();
  private hits = new WeakMap<TraceWindow, WindowHits | 'requested'>();
  private lastHits: WindowHits | null = null;

  constructor(
    private readonly fetch: Fetch,
    private readonly onFound: () => void,
    private readonly reveal: (match: EventRef) => void,
  ) {}

  get isActive(): boolean {
    return this.text.value.trim() !== '';
  }

  /** The parameters that say which events match. */
  get params(): Record<string, string> {
    return { query: this.text.value, of: this.of.value };
  }

  /** Whether the query is about arguments, of which some are read from the file when first asked for. */
  get readsArguments(): boolean {
    return ARGUMENTS.test(this.text.value);
  }

  /** Stops waiting for the answer. What the server is reading meanwhile, it keeps for the next time. */
  stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
    this.abort = new AbortController();
    this.isBusy.value = false;
    this.isStopped.value = true;
    this.page.value = null;
    this.lastHits = null;
    this.onFound();
  }

  private async timed<T>(answer: Promise<T>): Promise<T> {
    const begin = performance.now();
    const { abort } = this;
    const clock = window.setInterval(() => {
      if (!abort.signal.aborted) this.waitingS.value = Math.floor((performance.now() - begin) / 1000);
    }, 250);
    try {
      return await answer;
    } finally {
      clearInterval(clock);
      if (this.abort === abort || !this.isBusy.value) this.waitingS.value = 0;
    }
  }

  /** `isTyping`: more input may follow. */
  set(text: string, isTyping = false): void {
    if (text === this.text.value) return;
    this.text.value = text;
    this.restart(isTyping ? TYPING_MS : 0);
  }

  count(of: Of): void {
    if (of === this.of.value) return;
    this.of.value = of;
    this.restart(0);
  }

  /** Asks again: the query, or the hosts, are others. */
  restart(delayMs = 0): void {
    this.at.value = null;
    this.isStopped.value = false;
    this.opened.value = null;
    clearTimeout(this.timer);
    this.abort.abort();
    this.abort = new AbortController();
    this.hits = new WeakMap();
    if (!this.isActive) {
      this.page.value = null;
      this.error.value = null;
      this.isBusy.value = false;
      this.lastHits = null;
      this.onFound();
      return;
    }
    this.isBusy.value = true;
    this.timer = window.setTimeout(() => {
      this.loading = this.load({ offset: '0' });
    }, delayMs);
  }

  private async load(place: Record<string, string>): Promise<void> {
    const { abort } = this;
    const text = this.text.value;
    this.isBusy.value = true;
    this.isStopped.value = false;
    try {
      const params = { ...this.params, limit: String(PAGE), ...place };
      const answer = decodeSlices(await this.timed(this.fetch('slices', params, abort.signal)));
      if (abort.signal.aborted) return;
      this.page.value = { ...answer, text };
      this.error.value = null;
    } catch (error) {
      if (abort.signal.aborted) return;
      this.page.value = null;
      this.lastHits = null;
      this.error.value = error;
    }
    this.isBusy.value = false;
    this.onFound();
  }

  /**
   * Where a window has hits. While they are on the way, those of the window drawn before; null: there is no
   * search, or nothing is known yet.
   */
  hitsOf(drawn: TraceWindow): WindowHits | null {
    if (!this.isActive || this.error.value || this.isStopped.value) return null;
    const page = this.page.value;
    if (page?.text !== this.text.value) return this.lastHits; // still typing
    if (page.nRecorded + page.nDerived === 0) return null; // nothing to light
    const known = this.hits.get(drawn);
    if (known && known !== 'requested') return (this.lastHits = known);
    if (!known) void this.loadHits(drawn);
    return this.lastHits;
  }

  private async loadHits(drawn: TraceWindow): Promise<void> {
    const { abort, hits } = this;
    hits.set(drawn, 'requested');
    try {
      const params = requestParams({ ...drawn.request, hasFlows: false });
      const payload = await this.fetch('hits', { ...params, ...this.params }, abort.signal);
      if (abort.signal.aborted) return;
      hits.set(drawn, decodeHits(payload, drawn));
    } catch {
      hits.delete(drawn); // The next frame of this window asks again.
      return;
    }
    this.onFound();
  }

  /**
   * Goes to the next or previous match; the first time to the first match at or after `fromPs` (or the last
   * before it). Wraps around.
   */
  async go(step: 1 | -1, fromPs: number): Promise<void> {
    if (!this.isActive) return;
    if (this.page.value?.text !== this.text.value) {
      // Enter came before the answer: send the request at once, then go.
      clearTimeout(this.timer);
      this.loading = this.load({ offset: '0' });
    }
    await this.loading;
    if ((this.page.value?.nMatches ?? 0) === 0) return;
    if (this.at.value !== null) {
      await this.goTo(this.at.value + step);
      return;
    }
    await this.load({ from_ps: String(Math.max(0, Math.floor(fromPs))) });
    const page = this.page.value;
    const from = page?.matches[0];
    if (!page || !from) return;
    // All matches start earlier: the answer begins with the last of them.
    const isBeyond = from.startPs < fromPs;
    await this.goTo(step > 0 ? (isBeyond ? 0 : page.first) : isBeyond ? page.first : page.first - 1);
  }

  async goTo(place: number): Promise<void> {
    const page = this.page.value;
    if (!page || page.nMatches === 0) return;
    const wrapped = (place + page.nMatches) % page.nMatches;
    if (wrapped < page.first || wrapped >= page.first + page.matches.length)
      await this.load({ offset: String(Math.max(0, wrapped - Math.floor(PAGE / 2))) });
    const now = this.page.value;
    const match = now?.matches[wrapped - now.first];
    if (!match) return;
    this.at.value = wrapped;
    this.reveal(match);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.abort.abort();
  }
}

/** A text as a value of the language. */
export function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

/** The query of a link from before the language: a plain text, and whether it looked into arguments. */
export function queryOfLink(text: string, hasArguments: boolean): string {
  return hasArguments && text.trim() ? `any:${quoted(text.trim())}` : text;
}
