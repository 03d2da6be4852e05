/**
 * The visible window: moved by input in steps, by held keys at a constant speed; reports when it has come to
 * rest.
 */

import { signal } from '@preact/signals';
import { Rest } from '../../../base/rest';
import {
  clampViewport,
  isSameViewport,
  panBy,
  pxToTime,
  spanPs,
  zoomAt,
  type Viewport,
} from '../../../canvas/viewport';

export type HeldKey = 'w' | 'a' | 's' | 'd';

const SETTLE_DELAY_MS = 120;

/** Held keys: windows per second, and e-folds of zoom per second. */
const PAN_SPEED = 1.2;
const ZOOM_SPEED = 2.2;

/** A tap is one step of this many seconds; a longer press keeps moving. */
const TAP_SECONDS = 0.08;
const HOLD_FROM_MS = 150;

/** The window, moved as far as needed to have some of the trace in it. */
function touching(view: Viewport, durationPs: number): Viewport {
  const [least, most] = [1 - view.endPs, durationPs - 1 - view.startPs];
  const byPs = Math.max(0, least) + Math.min(0, most);
  return { startPs: view.startPs + byPs, endPs: view.endPs + byPs };
}

export class Camera {
  readonly settled = signal<Viewport>({ startPs: 0, endPs: 1 });
  widthPx = 1;
  /** The window may reach beyond the trace, as where two are drawn with aligned starts. */
  isFree = false;
  /** The pointer's position; null: not over the timeline. */
  pointerX: number | null = null;
  private current: Viewport = { startPs: 0, endPs: 1 };
  private hasLeapt = false;
  private readonly held = new Map<HeldKey, number>();
  private readonly rest = new Rest(SETTLE_DELAY_MS, () => {
    this.settle();
  });

  constructor(
    private readonly durationPs: () => number,
    private readonly onMove: () => void,
  ) {}

  get view(): Viewport {
    return this.current;
  }

  get isHeld(): boolean {
    return this.held.size > 0;
  }

  set(view: Viewport): void {
    const next = (this.isFree ? touching : clampViewport)(view, this.durationPs());
    if (!isSameViewport(next, this.current)) {
      this.current = next;
      this.rest.note();
    }
    this.onMove();
  }

  /** Jumps to another place: Back returns from it. */
  leap(view: Viewport): void {
    this.settle();
    if (!isSameViewport(clampViewport(view, this.durationPs()), this.current)) this.noteLeap();
    this.set(view);
  }

  noteLeap(): void {
    this.hasLeapt = true;
  }

  /** Whether there was a leap since the last call. */
  takeLeap(): boolean {
    const was = this.hasLeapt;
    this.hasLeapt = false;
    return was;
  }

  settle(): void {
    if (!isSameViewport(this.settled.value, this.current)) this.settled.value = this.current;
  }

  timeAt(px: number): number {
    return pxToTime(this.current, this.widthPx, px);
  }

  /** The time under the pointer, else the window's middle. */
  get focusPs(): number {
    return this.pointerX === null
      ? (this.current.startPs + this.current.endPs) / 2
      : this.timeAt(this.pointerX);
  }

  zoomBy(factor: number, atPx: number | null = this.pointerX): void {
    const anchor = atPx === null ? (this.current.startPs + this.current.endPs) / 2 : this.timeAt(atPx);
    this.set(zoomAt(this.current, factor, anchor, this.durationPs()));
  }

  panByPx(px: number): void {
    this.set(panBy(this.current, (px / this.widthPx) * spanPs(this.current), this.durationPs()));
  }

  showAll(): void {
    this.leap({ startPs: 0, endPs: this.durationPs() });
  }

  hold(key: HeldKey): void {
    if (this.held.has(key)) return;
    this.held.set(key, performance.now());
    this.move(key, TAP_SECONDS);
  }

  release(key?: HeldKey): void {
    if (key) this.held.delete(key);
    else this.held.clear();
  }

  /** Advances by one frame, for the held keys. */
  advance(now: number, seconds: number): void {
    for (const [key, since] of this.held) if (now - since > HOLD_FROM_MS) this.move(key, seconds);
  }

  private move(key: HeldKey, seconds: number): void {
    if (key === 'w') this.zoomBy(Math.exp(-ZOOM_SPEED * seconds));
    else if (key === 's') this.zoomBy(Math.exp(ZOOM_SPEED * seconds));
    else this.panByPx((key === 'a' ? -1 : 1) * PAN_SPEED * seconds * this.widthPx);
  }

  dispose(): void {
    this.rest.cancel();
  }
}
