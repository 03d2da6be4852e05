/**
 * The timeline at work: view, windows, selection and frames of one host's trace. It listens to nobody (gestures.ts turns
 * hands into its methods) and renders no HTML (the views read its signals).
 */

import { signal } from '@preact/signals';
import type { Payload } from '../../api/types';
import type { RowPlaces } from '../../canvas/boxes';
import type { Frame } from '../../canvas/renderer';
import { RULER_PX, Stage, type Marks, type Outline } from '../../canvas/stage';
import { bringIntoView, clampViewport, isSameViewport, panBy, pxToTime, spanPs, zoomAt, zoomTo, type Viewport } from '../../canvas/viewport';
import { layoutTracks, placeRows, rowTop, tracksWithin, type Layout } from './layout';
import { decodeFacts, decodeWindow, requestParams, type TraceFacts, type TraceWindow, type WindowRequest } from './model';
import { firstIn, neighbour, pick, type Direction, type Picked } from './picking';
import { readTheme } from './theme';
import { ALL_TRACKS_MAX, isComfortable, planRequest, willServe, Windows, type Wanted } from './windows';

export type Status = { readonly kind: 'loading' | 'ready' } | { readonly kind: 'failed'; readonly error: unknown };

export interface Hover {
  readonly picked: Picked;
  /** Of the pointer, from the top left of the stage. */
  readonly x: number;
  readonly y: number;
}

export type FetchWindow = (params: Record<string, string>, signal: AbortSignal) => Promise<Payload>;

const REQUEST_DELAY_MS = 40;
const SETTLE_DELAY_MS = 120;

/** Boxes are drawn at least a pixel wide; the pointer may miss them by this much. */
const SLACK_PX = 2;

/** Held keys: windows per second, and e-folds of zoom per second. */
const PAN_SPEED = 1.2;
const ZOOM_SPEED = 2.2;

export type HeldKey = 'w' | 'a' | 's' | 'd';

export class Timeline {
  readonly status = signal<Status>({ kind: 'loading' });
  readonly facts = signal<TraceFacts | null>(null);
  readonly layout = signal<Layout>(layoutTracks([], new Set(), RULER_PX));
  readonly folded = signal<ReadonlySet<string>>(new Set());
  readonly selected = signal<Picked | null>(null);
  readonly hovered = signal<Hover | null>(null);
  readonly settledView = signal<Viewport>({ startPs: 0, endPs: 1 });
  readonly isBusy = signal(false);
  /** The window's request failed though there is a picture. */
  readonly refusal = signal<unknown>(null);

  private view: Viewport = { startPs: 0, endPs: 1 };
  private readonly windows = new Windows();
  private readonly stage: Stage;
  private current: TraceWindow | null = null;
  private places: RowPlaces = { y: new Float32Array(0), height: new Uint8Array(0) };
  private placedFor: Layout | null = null;
  private readonly frame: Frame = { widthPx: 1, heightPx: 1, pixelRatio: 1, startPs: 0, endPs: 1, scrollPx: 0 };
  private readonly held = new Map<HeldKey, number>();
  private pointerX: number | null = null;
  private frameId = 0;
  private lastFrameAt = 0;
  private requestTimer = 0;
  private settleTimer = 0;
  private inFlight: { abort: AbortController; request: WindowRequest } | null = null;
  private readonly listeners = new Set<() => void>();
  private isDisposed = false;

  constructor(
    private readonly scroller: HTMLElement,
    host: HTMLElement,
    private readonly fetchWindow: FetchWindow,
    renderer?: 'webgl' | 'canvas2d',
  ) {
    this.stage = new Stage(host, () => { this.requestFrame(); }, renderer);
    this.retheme();
  }

  get renderer(): string {
    return this.stage.kind;
  }

  /** Asks for the whole trace, then shows `view` of it (null: all); `then` comes before the page is called ready. */
  async start(view: Viewport | null, then?: () => Promise<void>): Promise<void> {
    this.status.value = { kind: 'loading' };
    const request: WindowRequest = { startPs: null, endPs: null, widthPx: Math.min(4000, Math.max(500, this.devicePx())), trackIds: null };
    const abort = new AbortController();
    this.inFlight = { abort, request };
    try {
      const payload = await this.fetchWindow(requestParams(request), abort.signal);
      const facts = decodeFacts(payload);
      this.windows.add(decodeWindow(payload, request), true);
      this.facts.value = facts;
      this.inFlight = null;
      this.relayout();
      this.setView(view ?? { startPs: 0, endPs: facts.durationPs });
      await then?.();
      this.settle();
      this.status.value = { kind: 'ready' };
    } catch (error) {
      if (!abort.signal.aborted) this.status.value = { kind: 'failed', error };
    }
  }

  // --- what is shown ---

  get durationPs(): number {
    return this.facts.value?.durationPs ?? 1;
  }

  /** The whole trace at screen resolution. */
  get overview(): TraceWindow | null {
    return this.windows.overview;
  }

  get viewport(): Viewport {
    return this.view;
  }

  setView(view: Viewport): void {
    const next = clampViewport(view, this.durationPs);
    if (!isSameViewport(next, this.view)) {
      this.view = next;
      clearTimeout(this.settleTimer);
      this.settleTimer = window.setTimeout(() => { this.settle(); }, SETTLE_DELAY_MS);
    }
    this.requestFrame();
  }

  private settle(): void {
    if (!isSameViewport(this.settledView.value, this.view)) this.settledView.value = this.view;
  }

  showAll(): void {
    this.setView({ startPs: 0, endPs: this.durationPs });
  }

  zoomBy(factor: number, atPx: number | null = this.pointerX): void {
    const anchor = atPx === null ? (this.view.startPs + this.view.endPs) / 2 : pxToTime(this.view, this.frame.widthPx, atPx);
    this.setView(zoomAt(this.view, factor, anchor, this.durationPs));
  }

  panByPx(px: number): void {
    this.setView(panBy(this.view, (px / this.frame.widthPx) * spanPs(this.view), this.durationPs));
  }

  scrollBy(px: number): void {
    this.scroller.scrollTop += px;
  }

  /** Pans or zooms until release(): one step at once, then at an even speed. */
  hold(key: HeldKey): void {
    if (this.held.has(key)) return;
    this.held.set(key, performance.now());
    this.move(key, 0.08);
  }

  release(key?: HeldKey): void {
    if (key) this.held.delete(key);
    else this.held.clear();
  }

  private move(key: HeldKey, seconds: number): void {
    if (key === 'w') this.zoomBy(Math.exp(-ZOOM_SPEED * seconds));
    else if (key === 's') this.zoomBy(Math.exp(ZOOM_SPEED * seconds));
    else this.panByPx((key === 'a' ? -1 : 1) * PAN_SPEED * seconds * this.frame.widthPx);
  }

  toggle(key: string): void {
    const folded = new Set(this.folded.value);
    if (!folded.delete(key)) folded.add(key);
    this.folded.value = folded;
    this.relayout();
  }

  private relayout(): void {
    this.layout.value = layoutTracks(this.facts.value?.tracks ?? [], this.folded.value, RULER_PX);
    this.requestFrame();
  }

  retheme(): void {
    this.stage.setTheme(readTheme());
    this.requestFrame();
  }

  resize(widthPx: number, heightPx: number): void {
    this.frame.widthPx = Math.max(widthPx, 1);
    this.frame.heightPx = Math.max(heightPx, 1);
    this.frame.pixelRatio = window.devicePixelRatio || 1;
    this.drawNow();
  }

  private devicePx(): number {
    return Math.round(this.frame.widthPx * this.frame.pixelRatio);
  }

  // --- hovering and selecting ---

  private find(x: number, y: number): Picked | null {
    if (!this.current || y < RULER_PX) return null;
    const slackPs = (SLACK_PX / this.frame.widthPx) * spanPs(this.view);
    return pick(this.current, this.places, pxToTime(this.view, this.frame.widthPx, x), y + this.scroller.scrollTop, slackPs);
  }

  /** The pointer is here, from the top left of the stage; null: gone. */
  point(at: { x: number; y: number } | null): void {
    this.pointerX = at?.x ?? null;
    const picked = at ? this.find(at.x, at.y) : null;
    const before = this.hovered.value?.picked;
    this.hovered.value = at && picked ? { picked, x: at.x, y: at.y } : null;
    if (before?.event !== picked?.event || before?.startPs !== picked?.startPs) this.requestFrame();
  }

  selectAt(x: number, y: number): void {
    this.select(this.find(x, y));
  }

  zoomToBoxAt(x: number, y: number): void {
    const picked = this.find(x, y);
    if (picked) this.setView(zoomTo(picked.startPs, picked.durationPs, this.durationPs));
  }

  select(picked: Picked | null): void {
    this.selected.value = picked;
    this.requestFrame();
  }

  /** Selects and scrolls and pans as far as it takes to see it. */
  reveal(picked: Picked): void {
    this.select(picked);
    this.setView(bringIntoView(this.view, picked.startPs, picked.startPs + picked.durationPs, this.durationPs));
    const place = this.layout.value.placeOfTrack.get(picked.track);
    if (!place) return;
    const y = rowTop(place, picked.depth);
    const { scrollTop, clientHeight } = this.scroller;
    if (y < scrollTop + 2 * RULER_PX) this.scroller.scrollTop = y - 3 * RULER_PX;
    else if (y + place.boxHeight > scrollTop + clientHeight) this.scroller.scrollTop = y - clientHeight + 3 * RULER_PX;
  }

  zoomToSelected(): void {
    const picked = this.selected.value;
    if (!picked) return;
    this.reveal(picked);
    this.setView(zoomTo(picked.startPs, picked.durationPs, this.durationPs));
  }

  /** Selects the neighbour in that direction, or with nothing selected the first box in view; false: there is nothing to select. */
  selectNext(direction: Direction): boolean {
    const from = this.selected.value;
    if (!from) {
      const first = this.current && firstIn(this.current, this.view.startPs, this.view.endPs);
      if (first) this.reveal(first);
      return first !== null;
    }
    const near = this.current && neighbour(this.current, from, direction);
    const found = near ?? (this.windows.overview && neighbour(this.windows.overview, from, direction));
    if (found) this.reveal(found);
    return true;
  }

  // --- frames ---

  requestFrame(): void {
    if (this.frameId === 0 && !this.isDisposed) this.frameId = requestAnimationFrame((now) => { this.step(now); });
  }

  /** Calls back with each frame that is drawn; returns how to stop. */
  onFrame(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => { this.listeners.delete(listener); };
  }

  private step(now: number): void {
    this.frameId = 0;
    const seconds = Math.min((now - this.lastFrameAt) / 1000, 0.05);
    this.lastFrameAt = now;
    for (const [key, since] of this.held) if (now - since > 150) this.move(key, seconds);
    this.drawNow();
    if (this.held.size > 0) this.requestFrame();
  }

  private wanted(): Wanted {
    const { scrollTop, clientHeight } = this.scroller;
    const isMany = (this.facts.value?.tracks.length ?? 0) > ALL_TRACKS_MAX;
    const trackIds = isMany ? tracksWithin(this.layout.value, scrollTop, scrollTop + clientHeight) : null;
    return { view: this.view, widthPx: this.devicePx(), durationPs: this.durationPs, trackIds };
  }

  private drawNow(): void {
    if (!this.facts.value || this.isDisposed) return;
    const wanted = this.wanted();
    const best = this.windows.best(wanted);
    if (best && (best !== this.current || this.placedFor !== this.layout.value)) this.show(best);
    if (!best || !isComfortable(best, wanted)) this.scheduleRequest();
    this.frame.startPs = this.view.startPs;
    this.frame.endPs = this.view.endPs;
    this.frame.scrollPx = this.scroller.scrollTop;
    this.stage.draw(this.frame, this.marks());
    for (const listener of this.listeners) listener();
  }

  private show(next: TraceWindow): void {
    this.current = next;
    this.placedFor = this.layout.value;
    this.places = placeRows(next, this.placedFor);
    this.stage.setPicture({ boxes: next.boxes, places: this.places, styleOfName: next.styleOfName, window: next });
  }

  private marks(): Marks {
    const selected = this.selected.value;
    const hovered = this.hovered.value?.picked;
    return {
      selected: selected ? this.outlineOf(selected) : null,
      hovered: hovered ? this.outlineOf(hovered) : null,
      separators: this.layout.value.separators,
    };
  }

  private outlineOf(picked: Picked): Outline | null {
    const place = this.layout.value.placeOfTrack.get(picked.track);
    if (!place) return null;
    return { startPs: picked.startPs, durationPs: picked.durationPs, y: rowTop(place, picked.depth), height: place.boxHeight };
  }

  // --- data ---

  private scheduleRequest(): void {
    if (this.requestTimer !== 0) return;
    this.requestTimer = window.setTimeout(() => {
      this.requestTimer = 0;
      void this.load();
    }, REQUEST_DELAY_MS);
  }

  /** Asks for the window around the view; an older request that no longer helps is given up. */
  private async load(): Promise<void> {
    const wanted = this.wanted();
    const best = this.windows.best(wanted);
    if (this.isDisposed || (best && isComfortable(best, wanted))) return;
    const near = wanted.trackIds === null ? null : this.nearTracks();
    const request = planRequest({ ...wanted, trackIds: near });
    if (this.inFlight && willServe(this.inFlight.request, wanted)) return;
    this.inFlight?.abort.abort();
    const abort = new AbortController();
    this.inFlight = { abort, request };
    this.isBusy.value = true;
    try {
      const payload = await this.fetchWindow(requestParams(request), abort.signal);
      if (abort.signal.aborted) return;
      this.windows.add(decodeWindow(payload, request), false);
      this.refusal.value = null;
    } catch (error) {
      if (abort.signal.aborted) return;
      this.refusal.value = error;
      return;
    } finally {
      if (this.inFlight?.abort === abort) {
        this.inFlight = null;
        this.isBusy.value = false;
      }
    }
    this.requestFrame();
  }

  /** Tracks in sight and half a screen above and below. */
  private nearTracks(): number[] {
    const { scrollTop, clientHeight } = this.scroller;
    return tracksWithin(this.layout.value, scrollTop - clientHeight / 2, scrollTop + 1.5 * clientHeight);
  }

  dispose(): void {
    this.isDisposed = true;
    this.inFlight?.abort.abort();
    cancelAnimationFrame(this.frameId);
    clearTimeout(this.requestTimer);
    clearTimeout(this.settleTimer);
    this.stage.dispose();
  }
}
