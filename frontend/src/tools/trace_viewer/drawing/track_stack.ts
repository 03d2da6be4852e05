/**
 * The tracks on the page: the user's arrangement becomes a layout, the pinned ones scroll by themselves, and those
 * without events in the window are hidden if the user wants so.
 */

import { effect, signal, untracked, type Signal } from '@preact/signals';
import { readTable } from '../../../api/declared';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import type { Payload } from '../../../api/types';
import { headerPx, RULER_PX } from '../../../canvas/overlay';
import type { Viewport } from '../../../canvas/viewport';
import { layoutTracks, maxPinScroll, type Layout, type TrackPlace } from './layout';
import type { TraceFacts } from '../data/model';
import { arrange, PLAIN, type TrackView } from './track_view';

/** What the tracks need of the timeline. */
interface Around {
  readonly facts: Signal<TraceFacts | null>;
  readonly camera: { readonly settled: Signal<Viewport> };
  readonly marks: { readonly list: Signal<readonly unknown[]> };
  readonly loader: { readonly refusal: Signal<unknown> };
  ask(question: 'active', params: Record<string, string>, abort: AbortSignal): Promise<Payload>;
  /** The layout changed. */
  refresh(): void;
  requestFrame(): void;
}

export class TrackStack {
  readonly view = signal<TrackView>(PLAIN);
  readonly layout = signal<Layout>(layoutTracks(arrange([], PLAIN), PLAIN, RULER_PX));
  /** How far the pinned tracks are scrolled. */
  readonly pinScrollPx = signal(0);
  /** How often the menu of tracks was asked for by key. */
  readonly menuCalls = signal(0);
  /** Tracks with events in the window; null: not known. */
  private active: ReadonlySet<number> | null = null;
  private heightPx = Number.POSITIVE_INFINITY;
  private abort = new AbortController();
  private readonly undo: readonly (() => void)[];
  /** Whether there is a row of marks below the ruler. */
  hasMarks = false;

  constructor(private readonly around: Around) {
    const stopHiding = effect(() => {
      const { startPs, endPs } = around.camera.settled.value;
      if (this.view.value.hidesEmpty && around.facts.value) void this.findActive(startPs, endPs);
    });
    const stopMaking = around.marks.list.subscribe((marks) => {
      if (marks.length > 0 === this.hasMarks) return;
      this.hasMarks = marks.length > 0;
      untracked(() => {
        this.layOut();
      });
    });
    this.undo = [stopHiding, stopMaking];
  }

  /** Whether there is a row of steps above the ruler. */
  get hasSteps(): boolean {
    return (this.around.facts.value?.nSteps ?? 0) > 0;
  }

  change(view: TrackView): void {
    this.view.value = view;
    this.layOut();
  }

  /** The view's height changed: the pinned tracks get their share of it. */
  resize(heightPx: number): void {
    if (heightPx === this.heightPx) return;
    this.heightPx = heightPx;
    if (this.layout.value.pinned.length > 0) this.layOut();
  }

  /** Scrolls the pinned tracks, if they are taller than their strip; false: they are not. */
  scrollPins(px: number): boolean {
    const most = maxPinScroll(this.layout.value);
    this.pinScrollPx.value = Math.max(0, Math.min(this.pinScrollPx.value + px, most));
    this.around.requestFrame();
    return most > 0;
  }

  /** Scrolls the pinned tracks as far as needed to show a row of one of them, at `y` of the content. */
  showPinned({ boxHeight }: TrackPlace, screenY: number): void {
    const { topPx, pinnedBottomPx } = this.layout.value;
    if (screenY < topPx) this.scrollPins(screenY - topPx);
    else this.scrollPins(Math.max(0, screenY + boxHeight + 2 - pinnedBottomPx));
  }

  /** Shows a track that is hidden, filtered out, without events in the window or in a folded section. */
  uncover(id: number): void {
    const view = this.view.value;
    if (this.active) this.active = new Set([...this.active, id]);
    const hidden = new Set(view.hidden);
    hidden.delete(id);
    const shown = { ...view, hidden, filter: '' };
    const section = arrange(this.around.facts.value?.tracks ?? [], shown).sections.find(({ tracks }) =>
      tracks.some((track) => track.id === id),
    );
    this.change({ ...shown, folded: new Set([...view.folded].filter((key) => key !== section?.key)) });
  }

  private layOut(): void {
    const view = this.view.value;
    const shown = arrange(this.around.facts.value?.tracks ?? [], view, this.active);
    const topPx = headerPx(this.hasSteps, this.hasMarks);
    this.layout.value = layoutTracks(shown, view, topPx, this.heightPx);
    this.scrollPins(0);
    this.around.refresh();
  }

  /** Asks which tracks have events in the window, and hides the others. */
  private async findActive(startPs: number, endPs: number): Promise<void> {
    this.abort.abort();
    const abort = new AbortController();
    this.abort = abort;
    const params = { start_ps: String(Math.floor(startPs)), end_ps: String(Math.ceil(endPs)) };
    try {
      const answer = await this.around.ask('active', params, abort.signal);
      const rows = readTable(answer, TRACE_VIEWER.active.tables.active).all();
      if (abort.signal.aborted) return;
      this.active = new Set(rows.map(({ track }) => track ?? -1));
      this.layOut();
    } catch (error) {
      if (!abort.signal.aborted) this.around.loader.refusal.value = error;
    }
  }

  dispose(): void {
    for (const each of this.undo) each();
    this.abort.abort();
  }
}
