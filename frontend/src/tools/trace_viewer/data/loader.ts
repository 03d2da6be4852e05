/**
 * Requests the visible window, cancels requests that no longer help, and once everything is sharp prefetches
 * likely next views. Each picture stays until a better one arrives: there is always something to draw.
 */

import { signal } from '@preact/signals';
import { Rest } from '../../../base/rest';
import type { Payload } from '../../../api/types';
import { decodeWindow, requestParams, type TraceWindow, type WindowRequest } from './model';
import { isComfortable, neighborsOf, planRequest, willServe, Windows, type VisibleWindow } from './windows';

/** Empty: the window itself. */
export type Question =
  | ''
  | 'event'
  | 'neighbour'
  | 'slices'
  | 'groups'
  | 'hits'
  | 'fields'
  | 'utilization'
  | 'active'
  | 'compare'
  | 'chain'
  | 'dependencies'
  | 'places'
  | 'minimap';
export type Fetch = (
  question: Question,
  params: Record<string, string>,
  signal: AbortSignal,
) => Promise<Payload>;

const REQUEST_DELAY_MS = 40;

/** A server slower than this has enough to do without prefetching. */
const PREFETCH_UP_TO_MS = 600;
const PREFETCH_DELAY_MS = 150;

/** The share of its density that the next answer is expected to have at least: others are denser than they look. */
const DENSITY_KEPT = 0.9;

interface UnderWay {
  readonly abort: AbortController;
  readonly request: WindowRequest;
}

export class Loader {
  readonly isBusy = signal(false);
  /** The last request failed, but there is a picture. */
  readonly refusal = signal<unknown>(null);
  private readonly windows = new Windows();
  private timer = 0;
  private readonly idle = new Rest(PREFETCH_DELAY_MS, () => {
    void this.loadAhead();
  });
  private inFlight: UnderWay | null = null;
  private ahead: UnderWay | null = null;
  private lastMs = 0;
  /** How many boxes a pixel of width brings: of the last answer, or of a denser one shortly before. */
  boxesPerPx = 0;
  private isDisposed = false;

  constructor(
    private readonly fetch: Fetch,
    /** The window on screen, with the tracks in sight; `withMargin`: with some beyond. */
    private readonly visibleWindow: (withMargin: boolean) => VisibleWindow,
    private readonly focusPs: () => number,
    private readonly onArrival: () => void,
  ) {}

  get whole(): TraceWindow | null {
    return this.windows.overview;
  }

  /** The whole trace at the screen's width; kept permanently. */
  async loadWhole(widthPx: number): Promise<Payload> {
    const request: WindowRequest = { startPs: null, endPs: null, widthPx, trackIds: null, hasFlows: false };
    const abort = new AbortController();
    this.inFlight = { abort, request };
    const payload = await this.fetch('', requestParams(request), abort.signal);
    const window = decodeWindow(payload, request);
    this.note(window);
    this.windows.add(window, true);
    this.inFlight = null;
    return payload;
  }

  /** The window to draw now; requests a better one if possible. */
  best(): TraceWindow | null {
    const visible = this.visibleWindow(false);
    const best = this.windows.best(visible);
    if (!best || !isComfortable(best, visible)) this.schedule();
    else this.scheduleAhead();
    return best;
  }

  private schedule(): void {
    this.idle.cancel();
    if (this.timer !== 0) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      void this.load();
    }, REQUEST_DELAY_MS);
  }

  private scheduleAhead(): void {
    if (this.inFlight || this.lastMs > PREFETCH_UP_TO_MS) this.idle.cancel();
    else this.idle.note();
  }

  private async load(): Promise<void> {
    const visible = this.visibleWindow(false);
    const best = this.windows.best(visible);
    if (this.isDisposed || (best && isComfortable(best, visible))) return;
    if (this.inFlight && willServe(this.inFlight.request, visible)) return;
    this.inFlight?.abort.abort();
    this.ahead?.abort.abort();
    const pending: UnderWay = {
      abort: new AbortController(),
      request: planRequest(this.visibleWindow(true)),
    };
    this.inFlight = pending;
    this.isBusy.value = true;
    const startedAt = performance.now();
    try {
      await this.ask(pending);
      this.refusal.value = null;
      this.lastMs = performance.now() - startedAt;
    } catch (error) {
      if (!pending.abort.signal.aborted) this.refusal.value = error;
      return;
    } finally {
      if (this.inFlight === pending) {
        this.inFlight = null;
        this.isBusy.value = false;
      }
    }
    if (!pending.abort.signal.aborted) this.onArrival();
  }

  private note({ boxes, request }: TraceWindow): void {
    this.boxesPerPx = Math.max(boxes.n / request.widthPx, DENSITY_KEPT * this.boxesPerPx);
  }

  private async ask({ request, abort }: UnderWay): Promise<void> {
    const payload = await this.fetch('', requestParams(request), abort.signal);
    if (abort.signal.aborted) return;
    const window = decodeWindow(payload, request);
    this.note(window);
    this.windows.add(window, false);
  }

  private async loadAhead(): Promise<void> {
    if (this.isDisposed || this.inFlight) return;
    const next = neighborsOf(this.visibleWindow(true), this.focusPs()).find((visible) => {
      const best = this.windows.best(visible, false);
      return !best || !isComfortable(best, visible);
    });
    if (!next) return;
    this.ahead?.abort.abort();
    const pending: UnderWay = { abort: new AbortController(), request: planRequest(next) };
    this.ahead = pending;
    try {
      await this.ask(pending);
    } catch {
      // A prefetch failed: if the window is needed, its own request will report the error.
      return;
    }
    if (!pending.abort.signal.aborted) void this.loadAhead();
  }

  dispose(): void {
    this.isDisposed = true;
    this.inFlight?.abort.abort();
    this.ahead?.abort.abort();
    clearTimeout(this.timer);
    this.idle.cancel();
  }
}
