/**
 * Draws boxes: with WebGL2 if available, else on a 2D canvas. Both take the same buffers and draw the same
 * picture.
 */

import { PIN_PX, type InstanceBatch } from './boxes';

/**
 * One frame's view, in CSS pixels; the canvas has widthPx × pixelRatio by heightPx × pixelRatio device
 * pixels.
 */
export interface Frame {
  widthPx: number;
  heightPx: number;
  pixelRatio: number;
  startPs: number;
  endPs: number;
  /** How far the content is scrolled down. */
  scrollPx: number;
  /** How far the pinned rows are scrolled down within their strip. */
  pinScrollPx: number;
}

/** A strip of the canvas, in CSS pixels from its top, and which part of the content is visible in it. */
export interface Band {
  readonly topPx: number;
  readonly bottomPx: number;
  readonly scrollPx: number;
}

/** The pinned rows at the top (an empty strip if there are none), and below them the scrolled content. */
export function bandsOf(frame: Frame, pinnedBottomPx: number): readonly Band[] {
  const edge = Math.min(Math.max(pinnedBottomPx, 0), frame.heightPx);
  const scrolled = { topPx: edge, bottomPx: frame.heightPx, scrollPx: frame.scrollPx };
  return edge > 0
    ? [scrolled, { topPx: 0, bottomPx: edge, scrollPx: frame.pinScrollPx - PIN_PX }]
    : [scrolled];
}

/** An RGB triple, 0–1. */
export type Rgb = readonly [number, number, number];

export interface BoxColors {
  /** Fill per style number. */
  readonly fills: readonly Rgb[];
  readonly background: Rgb;
}

export interface BoxRenderer {
  readonly kind: 'webgl' | 'canvas2d';
  readonly canvas: HTMLCanvasElement;
  setColors(colors: BoxColors): void;
  setBatch(batch: InstanceBatch): void;
  draw(frame: Frame, bands: readonly Band[]): void;
  dispose(): void;
}

export const MAX_STYLES = 96;

/**
 * Boxes at least this wide leave a hairline to the next, so that adjacent boxes of one color stay distinct
 * (device pixels).
 */
export const GAP_FROM_PX = 4;

/** Width and spacing of the hatching of merged boxes, in CSS pixels. */
export const HATCH_PX = 4;

/** Merged boxes: the share of the fill that remains between the hatching lines, and on them. */
export const MERGED_FILL = 0.5;
export const HATCH_FILL = 0.82;

/** Boxes that do not match the search: the share of their fill that remains. */
export const DIM_FILL = 0.22;

export function mix(a: Rgb, b: Rgb, shareOfA: number): Rgb {
  const t = 1 - shareOfA;
  return [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t];
}

export function cssOf(color: Rgb): string {
  return `rgb(${color.map((part) => Math.round(part * 255)).join(' ')})`;
}

/** Sizes the canvas for the frame; true if the size changed (which clears it). */
export function fitCanvas(canvas: HTMLCanvasElement, frame: Frame): boolean {
  const width = Math.max(1, Math.round(frame.widthPx * frame.pixelRatio));
  const height = Math.max(1, Math.round(frame.heightPx * frame.pixelRatio));
  if (canvas.width === width && canvas.height === height) return false;
  canvas.width = width;
  canvas.height = height;
  return true;
}
