/**
 * The meaning of a wheel event. A mouse wheel sends notches (multiples of 120) and zooms at the pointer; two
 * fingers on a touchpad send small uneven steps and move the page: up and down through the tracks, left and
 * right through time. A pinch arrives as a wheel event with Ctrl and zooms. A stream of events keeps the
 * meaning of its first.
 */

export type WheelAct =
  | { readonly act: 'zoom'; readonly factor: number }
  | { readonly act: 'move'; readonly x: number; readonly y: number };

export interface Turn {
  readonly deltaX: number;
  readonly deltaY: number;
  readonly deltaMode: number;
  /** As the browser counts notches: 120 each; undefined if it does not. */
  readonly wheelDeltaY?: number | undefined;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
}

const LINE_PX = 16;
const PAGE_PX = 400;
const ZOOM_PER_PX = 0.0016;
const PINCH_PER_PX = 0.01;
const MAX_NOTCH_PX = 300;
const STREAM_MS = 250;
const NOTCH = 120;
/** In every browser a notch moves a page by some lines. */
const LEAST_NOTCH_PX = 50;

function pxOf(delta: number, mode: number): number {
  return mode === 0 ? delta : delta * (mode === 1 ? LINE_PX : PAGE_PX);
}

function isNotched({ deltaX, deltaY, deltaMode, wheelDeltaY }: Turn): boolean {
  if (deltaMode !== 0) return true;
  return (
    deltaX === 0 &&
    Math.abs(deltaY) >= LEAST_NOTCH_PX &&
    wheelDeltaY !== undefined &&
    wheelDeltaY !== 0 &&
    wheelDeltaY % NOTCH === 0
  );
}

export class Wheel {
  private lastAt = -Infinity;
  private isMouse = true;

  turn(turn: Turn, atMs: number): WheelAct {
    if (atMs - this.lastAt > STREAM_MS) this.isMouse = isNotched(turn);
    this.lastAt = atMs;
    const x = pxOf(turn.deltaX, turn.deltaMode);
    const y = pxOf(turn.deltaY, turn.deltaMode);
    const notch = Math.max(-MAX_NOTCH_PX, Math.min(MAX_NOTCH_PX, y));
    if (turn.ctrlKey || turn.metaKey)
      return { act: 'zoom', factor: Math.exp(this.isMouse ? notch * ZOOM_PER_PX : notch * PINCH_PER_PX) };
    if (turn.shiftKey) return { act: 'move', x: x || y, y: 0 };
    if (turn.altKey) return { act: 'move', x: 0, y };
    if (this.isMouse && Math.abs(y) >= Math.abs(x))
      return { act: 'zoom', factor: Math.exp(notch * ZOOM_PER_PX) };
    // Two fingers rarely move exactly straight: the smaller component is dropped.
    return Math.abs(x) > Math.abs(y) ? { act: 'move', x, y: 0 } : { act: 'move', x: 0, y };
  }
}
