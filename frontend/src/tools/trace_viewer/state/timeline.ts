/**
 * The timeline's state: tracks, selection, marks and frames of the shown hosts' trace. It handles no input
 * (gestures.ts and keys.ts call its methods) and renders no HTML (the views read its signals).
 */

import { batch, signal } from '@preact/signals';
import { Rest } from '../../../base/rest';
import { valueAt } from '../../../canvas/areas';
import { DIAMOND_PX } from '../../../canvas/boxes';
import { RULER_PX, toScreen } from '../../../canvas/overlay';
import {
  bringIntoView,
  clampViewport,
  isSameViewport,
  spanPs,
  zoomTo,
  type Viewport,
} from '../../../canvas/viewport';
import type { Frame } from '../../../canvas/renderer';
import { widthOfWhole } from '../data/ahead';
import { Camera } from '../drawing/camera';
import type { EventRef, FlowNeighbour } from '../data/details_model';
import type { FlowArrow } from '../drawing/arrows';
import { Frames } from '../drawing/frames';
import { contentY, isCounter, rowTop, trackAt, tracksWithin } from '../drawing/layout';
import { Loader, type Fetch, type Question } from '../data/loader';
import { labelOf, stretchOf, type Marked } from '../drawing/marked';
import { Marks } from './marks';
import { decodeFacts, movedPs, type TraceFacts, type TraceWindow, type Track } from '../data/model';
import { depthOf, pick, pickedEvent, type Picked } from '../drawing/picking';
import { Search } from './search';
import { Several } from './several';
import { TrackStack } from '../drawing/track_stack';
import { fold, type TrackView } from '../drawing/track_view';
import { ALL_TRACKS_MAX, type VisibleWindow } from '../data/windows';

export type Status =
  { readonly kind: 'loading' | 'ready' } | { readonly kind: 'failed'; readonly error: unknown };

export type Tool = 'select' | 'pan' | 'zoom' | 'measure';

/** The box under the pointer, and the pointer's position from the top left of the stage. */
export interface Hover {
  readonly x: number;
  readonly y: number;
  readonly picked: Picked | null;
  /** Over a counter: its track, and its value at that time. */
  readonly counter: { readonly track: Track; readonly value: number } | null;
  /** An arrow, where there is no box. */
  readonly arrow: FlowArrow | null;
}

/** Boxes are drawn at least a pixel wide; the pointer may miss them by this much. */
const SLACK_PX = 2;
const POINT_AGAIN_MS = 100;

export class Timeline {
  readonly status = signal<Status>({ kind: 'loading' });
  readonly facts = signal<TraceFacts | null>(null);
  readonly selected = signal<Picked | null>(null);
  /** Events that are selected together, one click each. */
  readonly several = new Several();
  readonly marked = signal<Marked | null>(null);
  /** By what totals of the marked interval, or of several events, are grouped. */
  readonly totalsBy = signal('name');
  readonly marks = new Marks();
  readonly hovered = signal<Hover | null>(null);
  readonly tool = signal<Tool>('pan');
  readonly hasAllFlows = signal(false);
  /** Arrows of all flows in the window, if they are switched on. */
  readonly nFlows = signal(0);
  readonly hiddenKinds = signal<ReadonlySet<string>>(new Set());
  readonly camera = new Camera(
    () => this.durationPs,
    () => {
      this.requestFrame();
    },
  );
  readonly stack = new TrackStack(this);
  readonly trackView = this.stack.view;
  readonly layout = this.stack.layout;
  readonly pinScrollPx = this.stack.pinScrollPx;
  readonly search: Search;
  loader: Loader;

  /** Arrows of the selected event. */
  flows: readonly FlowNeighbour[] = [];
  readonly frames: Frames;
  private isDisposed = false;
  private pointerAt: { readonly x: number; readonly y: number } | null = null;
  /** After a zoom or a scroll a different box may be under a pointer that has not moved. */
  private readonly atRest = new Rest(POINT_AGAIN_MS, () => {
    if (this.pointerAt) this.point(this.pointerAt);
  });

  constructor(
    readonly scroller: HTMLElement,
    host: HTMLElement,
    private fetch: Fetch,
    renderer?: 'webgl' | 'canvas2d',
  ) {
    this.frames = new Frames(this, scroller, host, renderer);
    this.loader = this.newLoader(fetch);
    this.search = new Search(
      (question, params, abort) => this.fetch(question, params, abort),
      () => {
        this.refresh();
      },
      (match) => {
        this.revealEvent(match);
      },
    );
    this.retheme();
    this.frames.onFrame(() => {
      if (this.pointerAt) this.atRest.note();
    });
  }

  private newLoader(fetch: Fetch): Loader {
    return new Loader(
      fetch,
      (withMargin) => this.visibleWindow(withMargin),
      () => this.camera.focusPs,
      () => {
        this.requestFrame();
      },
    );
  }

  get renderer(): string {
    return this.frames.renderer;
  }

  /** Cancels requests other than the window's: details, totals, neighbors. */
  ask(
    question: Question,
    params: Record<string, string>,
    abort: AbortSignal = new AbortController().signal,
  ): ReturnType<Fetch> {
    return this.fetch(question, params, abort);
  }

  /** Requests the whole trace and shows `view` of it (null: all); `then` runs before the page is ready. */
  async start(view: Viewport | null, then?: () => Promise<void>): Promise<void> {
    if (!this.facts.value) this.status.value = { kind: 'loading' };
    const { loader } = this;
    const before = this.facts.value;
    try {
      const facts = decodeFacts(await loader.loadWhole(widthOfWhole(this.frames.devicePx)));
      if (this.isDisposed || loader !== this.loader) return;
      batch(() => {
        this.facts.value = facts;
        this.several.keepOn(facts.tracks);
        this.changeTracks(this.trackView.value);
      });
      this.camera.set(view ?? this.wholeView);
      if (before) this.shift(movedPs(before, facts), view !== null);
      await then?.();
      this.camera.settle();
      this.status.value = { kind: 'ready' };
    } catch (error) {
      if (!this.isDisposed && loader === this.loader) this.status.value = { kind: 'failed', error };
    }
  }

  /** Other hosts: the current picture stays until theirs arrives; window and tracks are kept. */
  async reopen(fetch: Fetch): Promise<void> {
    const before = this.loader;
    this.fetch = fetch;
    this.loader = this.newLoader(fetch);
    before.dispose();
    const wasWhole = isSameViewport(this.camera.view, clampViewport(this.wholeView, this.durationPs));
    await this.start(wasWhole ? null : this.camera.view);
    this.search.restart();
  }

  /** Shifts window, selection and mark by the offset of the remaining hosts. */
  private shift(byPs: number, isPart: boolean): void {
    if (byPs === 0) return;
    const { startPs, endPs } = this.camera.view;
    if (isPart) this.camera.set({ startPs: startPs + byPs, endPs: endPs + byPs });
    const [selected, marked] = [this.selected.value, this.marked.value];
    if (selected) this.select({ ...selected, startPs: selected.startPs + byPs });
    if (marked) this.mark({ ...marked, startPs: marked.startPs + byPs, endPs: marked.endPs + byPs });
    this.several.shift(byPs);
    this.marks.shift(byPs);
  }

  // --- the view ---

  /** Where a page without a window in its link begins: the whole trace, without a few events far from it. */
  get wholeView(): Viewport {
    return this.facts.value?.focus ?? { startPs: 0, endPs: this.durationPs };
  }

  get durationPs(): number {
    return this.facts.value?.durationPs ?? 1;
  }

  get overview(): TraceWindow | null {
    return this.loader.whole;
  }

  get window(): TraceWindow | null {
    return this.frames.window;
  }

  /** Scrolls the tracks; with the pointer over the pinned ones (`atY`), these. */
  scrollBy(px: number, atY = Number.POSITIVE_INFINITY): void {
    if (atY < this.layout.value.pinnedBottomPx && this.stack.scrollPins(px)) return;
    this.scroller.scrollTop += px;
  }

  toggle(key: string): void {
    this.changeTracks(fold(this.trackView.value, key));
  }

  changeTracks(view: TrackView): void {
    this.stack.change(view);
  }

  /** Whether there is a row of steps above the ruler. */
  get hasSteps(): boolean {
    return this.stack.hasSteps;
  }

  showFlows(isOn: boolean): void {
    this.hasAllFlows.value = isOn;
    this.refresh();
  }

  hideKinds(kinds: ReadonlySet<string>): void {
    this.hiddenKinds.value = kinds;
    this.frames.refreshArrows();
  }

  showFlowsOfSelected(flows: readonly FlowNeighbour[]): void {
    this.flows = flows;
    this.frames.refreshArrows();
  }

  /** Tracks, search or theme changed: the picture is rebuilt with the next frame. */
  refresh(): void {
    this.frames.refresh();
  }

  retheme(): void {
    this.frames.retheme();
  }

  resize(widthPx: number, heightPx: number): void {
    const { heightPx: before } = this.frames.frame;
    this.frames.resize(widthPx, heightPx);
    this.camera.widthPx = Math.max(widthPx, 1);
    this.stack.resize(heightPx);
    const outline = this.selected.value && this.frames.outlineOf(this.selected.value);
    // The drawer that opens for the selected event must not cover it.
    if (this.selected.value && outline && heightPx < before && outline.y < this.scroller.scrollTop + before)
      this.scrollTo(this.selected.value);
    this.frames.drawNow();
  }

  // --- hovering, selecting, marking ---

  find(x: number, y: number): Picked | null {
    const { window, scene } = this.frames;
    if (!window || y < this.layout.value.topPx) return null;
    const perPx = spanPs(this.camera.view) / this.camera.widthPx;
    return pick(window, scene.places, this.camera.timeAt(x), this.contentAt(y), {
      slackPs: SLACK_PX * perPx,
      diamondPs: DIAMOND_PX * perPx,
    });
  }

  /** The height of the content at a height of the stage. */
  contentAt(y: number): number {
    return contentY(this.layout.value, y, this.scroller.scrollTop, this.pinScrollPx.value);
  }

  private counterAt(x: number, y: number): Hover['counter'] {
    const place = y < this.layout.value.topPx ? null : trackAt(this.layout.value, this.contentAt(y));
    const series = place && isCounter(place.track) ? this.window?.counters.get(place.track.id) : undefined;
    const value = series ? valueAt(series, this.camera.timeAt(x)) : null;
    return place && value !== null ? { track: place.track, value } : null;
  }

  /** Sets the pointer's position, from the top left of the stage; null: gone. */
  point(position: { readonly x: number; readonly y: number } | null): void {
    this.pointerAt = position;
    this.camera.pointerX = position?.x ?? null;
    const picked = position ? this.find(position.x, position.y) : null;
    const counter = position && !picked ? this.counterAt(position.x, position.y) : null;
    const arrow = position && !picked ? this.frames.arrowAt(position.x, position.y) : null;
    const before = this.hovered.value?.picked;
    const isSame = before?.event === picked?.event && before?.startPs === picked?.startPs;
    if (
      isSame &&
      counter === null &&
      arrow === null &&
      position?.x === this.hovered.value?.x &&
      position?.y === this.hovered.value?.y
    )
      return;
    this.hovered.value =
      position && (picked ?? counter ?? arrow) ? { ...position, picked, counter, arrow } : null;
    if (!isSame) this.requestFrame();
  }

  zoomToBoxAt(x: number, y: number): void {
    const picked = this.find(x, y);
    if (picked) this.camera.leap(zoomTo(picked.startPs, picked.durationPs, this.durationPs));
  }

  select(picked: Picked | null): void {
    if (picked?.event !== this.selected.value?.event) this.flows = [];
    this.selected.value = picked;
    this.frames.refreshArrows();
  }

  selectSeveral(events: readonly Picked[]): void {
    this.several.set(events);
    this.requestFrame();
  }

  /** Adds the event to those that are selected together, or removes it. */
  addToSelection(picked: Picked): void {
    this.select(this.several.toggle(picked, this.selected.value));
  }

  /** Selects the event, and scrolls and pans as far as needed to show it. */
  reveal(picked: Picked): void {
    this.select(picked);
    this.camera.set(this.viewOn(picked));
    this.scrollTo(picked);
  }

  private viewOn({ startPs, durationPs }: Picked): Viewport {
    return bringIntoView(this.camera.view, startPs, startPs + durationPs, this.durationPs);
  }

  /** Goes to the event without selecting it. */
  leapTo(picked: Picked): void {
    this.camera.leap(this.viewOn(picked));
    this.scrollTo(picked);
  }

  /** Follows a link: Back returns to the previous event. */
  follow(event: EventRef): void {
    this.camera.settle();
    if (event.event !== this.selected.value?.event) this.camera.noteLeap();
    this.revealEvent(event);
  }

  private scrollTo(picked: Picked): void {
    const layout = this.layout.value;
    const place = layout.placeOfTrack.get(picked.track);
    if (!place) return;
    const y = rowTop(place, picked.depth);
    if (place.isPinned) {
      this.stack.showPinned(place, toScreen(y, this.frames.frame));
      return;
    }
    const { scrollTop, clientHeight } = this.scroller;
    if (y < scrollTop + layout.pinnedBottomPx + RULER_PX)
      this.scroller.scrollTop = y - layout.pinnedBottomPx - 2 * RULER_PX;
    else if (y + place.boxHeight > scrollTop + clientHeight)
      this.scroller.scrollTop = y - clientHeight + 3 * RULER_PX;
  }

  /**
   * Shows an event known only by its times; its track is unfolded if necessary, its row taken from the
   * picture, or later from the details. `isWindowKept`: the window was chosen with the event.
   */
  revealEvent(event: EventRef, depth?: number, isWindowKept = false): void {
    const track = this.facts.value?.tracks.find(({ id }) => id === event.track);
    if (track && !this.layout.value.placeOfTrack.has(track.id)) this.stack.uncover(track.id);
    const { window } = this;
    const picked = pickedEvent(
      event,
      depth ?? (window && depthOf(window, event.event, event.track, event.startPs)) ?? 0,
    );
    if (!isWindowKept) {
      this.reveal(picked);
      return;
    }
    this.select(picked);
    this.scrollTo(picked);
  }

  zoomToSelected(): void {
    const marked = this.marked.value;
    const picked = this.selected.value;
    if (picked) {
      this.select(picked);
      this.scrollTo(picked);
      this.camera.leap(zoomTo(picked.startPs, picked.durationPs, this.durationPs));
    } else if (marked)
      this.camera.leap(zoomTo(marked.startPs, marked.endPs - marked.startPs, this.durationPs, 0.05));
  }

  mark(marked: Marked | null): void {
    this.frames.draft = null;
    this.marked.value = marked;
    this.requestFrame();
  }

  /**
   * The selected event's extent, else that of the box under the pointer, else the window. A box that was drawn
   * stays while no event is selected.
   */
  markSelected(): void {
    if (!this.selected.value && this.marked.value?.trackIds) return;
    const picked = this.selected.value ?? this.hovered.value?.picked;
    const { startPs, endPs } = picked
      ? { startPs: picked.startPs, endPs: picked.startPs + Math.max(picked.durationPs, 1) }
      : this.camera.view;
    this.mark({ startPs: Math.floor(startPs), endPs: Math.ceil(endPs), trackIds: null, depths: null });
  }

  /** Marks a track over the window: the drawer then shows its totals. */
  markTrack(id: number): void {
    const { startPs, endPs } = this.camera.view;
    this.mark({ startPs: Math.floor(startPs), endPs: Math.ceil(endPs), trackIds: [id], depths: null });
  }

  /** The extent of the current drag; null: none. */
  sketch(draft: Marked | null): void {
    this.frames.draft = draft && { ...stretchOf(draft, this.layout.value), label: labelOf(draft) };
    this.requestFrame();
  }

  /** One step back: mark, selection, search, tool; false: there was nothing to undo. */
  stepBack(): boolean {
    if (this.marked.value) this.mark(null);
    else if (this.several.events.value.length > 0) this.selectSeveral([]);
    else if (this.selected.value) this.select(null);
    else if (this.search.isActive) this.search.set('');
    else if (this.tool.value !== 'pan') this.tool.value = 'pan';
    else return false;
    return true;
  }

  // --- frames ---

  requestFrame(): void {
    this.frames.request();
  }

  /** Calls back with each frame that is drawn; returns a function that stops it. */
  onFrame(listener: () => void): () => void {
    return this.frames.onFrame(listener);
  }

  best(): TraceWindow | null {
    return this.facts.value ? this.loader.best() : null;
  }

  /** Ids of the tracks in sight, and `beyondPx` above and below. */
  tracksInSight(beyondPx = 0): number[] {
    const { scrollTop, clientHeight } = this.scroller;
    return tracksWithin(
      this.layout.value,
      scrollTop + this.layout.value.pinnedBottomPx - beyondPx,
      scrollTop + clientHeight + beyondPx,
    );
  }

  private visibleWindow(withMargin: boolean): VisibleWindow {
    const isMany = (this.facts.value?.tracks.length ?? 0) > ALL_TRACKS_MAX;
    const trackIds = isMany ? this.tracksInSight(withMargin ? this.scroller.clientHeight / 2 : 0) : null;
    return {
      view: this.camera.view,
      widthPx: this.frames.devicePx,
      durationPs: this.durationPs,
      trackIds,
      hasFlows: this.hasAllFlows.value,
      boxesPerPx: this.loader.boxesPerPx,
    };
  }

  get size(): { readonly widthPx: number; readonly heightPx: number } {
    return this.frames.frame;
  }

  /** The current picture, drawn onto another canvas at (x, y). */
  copyTo(context: CanvasRenderingContext2D, x: number, y: number): Frame {
    return this.frames.copyTo(context, x, y);
  }

  dispose(): void {
    this.isDisposed = true;
    this.stack.dispose();
    this.atRest.cancel();
    this.loader.dispose();
    this.search.dispose();
    this.camera.dispose();
    this.frames.dispose();
  }
}
