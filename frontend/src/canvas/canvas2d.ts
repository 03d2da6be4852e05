/**
 * Boxes without WebGL2: where it is missing, emulated, or its context was lost. Without a GPU a canvas draws each rectangle on
 * the main thread, some 0.5 µs apiece, which for the 20,000 of a full screen is too much. Boxes of a row share their height,
 * so here one line of pixels is written a row (four where there is hatching) and copied downward: what a frame costs is
 * bounded by the screen, not by the trace.
 */

import { DIM, firstInstanceFrom, MERGED, type InstanceBatch } from './boxes';
import { DIM_FILL, fitCanvas, GAP_FROM_PX, HATCH_FILL, HATCH_PX, MERGED_FILL, mix, type Band, type BoxColors, type BoxRenderer, type Frame, type Rgb } from './renderer';

/** A look is style × 4 + flags. */
const FLAGS = [0, MERGED, DIM, MERGED | DIM] as const;

/** As a pixel in memory: red in the lowest byte, opaque. */
export function packed([red, green, blue]: Rgb): number {
  const byte = (share: number): number => Math.round(Math.min(Math.max(share, 0), 1) * 255);
  return ((255 << 24) | (byte(blue) << 16) | (byte(green) << 8) | byte(red)) >>> 0;
}

/** Pixels of the two shades of each look: the ground, and the hatching's lines (the same where it is not merged). */
export interface Shades {
  readonly ground: Uint32Array;
  readonly line: Uint32Array;
}

export function shadesOf({ fills, background }: BoxColors): Shades {
  const of = (shareOf: (isMerged: boolean) => number): Uint32Array =>
    Uint32Array.from(fills.flatMap((fill) => FLAGS.map((flags) => packed(mix(fill, background, shareOf((flags & MERGED) !== 0) * (flags & DIM ? DIM_FILL : 1))))));
  return { ground: of((isMerged) => (isMerged ? MERGED_FILL : 1)), line: of((isMerged) => (isMerged ? HATCH_FILL : 1)) };
}

export interface Pixels {
  readonly data: Uint32Array;
  readonly width: number;
  readonly height: number;
}

/** Where a row lies, in device pixels, and which part of it is seen. */
interface Strip {
  readonly top: number;
  readonly bottom: number;
}

/** Writes one line of a row; true: there is hatching in it, so that lines differ. */
function writeLine(pixels: Pixels, y: number, batch: InstanceBatch, row: number, frame: Frame, shades: Shades): boolean {
  const { data, width } = pixels;
  const perPs = width / (frame.endPs - frame.startPs);
  const from = frame.startPs - batch.originPs;
  const to = frame.endPs - batch.originPs;
  const last = batch.rowFirst[row + 1] as number;
  let hasHatching = false;
  for (let i = firstInstanceFrom(batch, row, from); i < last; i++) {
    const start = batch.floats[4 * i] as number;
    if (start > to) break;
    const rounded = Math.round((start - from) * perPs);
    // What begins where the window ends, as the trace's last instant does, has the last pixel.
    const left = Math.max(rounded === width ? width - 1 : rounded, -GAP_FROM_PX);
    let right = Math.min(Math.round(((batch.floats[4 * i + 1] as number) - from) * perPs), width + GAP_FROM_PX);
    right = right - left >= GAP_FROM_PX ? right - 1 : Math.max(right, left + 1);
    const flags = batch.marks[16 * i + 13] as number;
    const look = (batch.marks[16 * i + 12] as number) * 4 + flags;
    const ground = shades.ground[look] as number;
    const end = y * width + Math.min(right, width);
    if ((flags & MERGED) === 0) {
      for (let at = y * width + Math.max(left, 0); at < end; at++) data[at] = ground;
      continue;
    }
    hasHatching = true;
    const line = shades.line[look] as number;
    for (let x = Math.max(left, 0), at = y * width + x; at < end; x++, at++) data[at] = (x + y) % HATCH_PX < HATCH_PX / 2 ? line : ground;
  }
  return hasHatching;
}

function fillRow(pixels: Pixels, strip: Strip, batch: InstanceBatch, row: number, frame: Frame, shades: Shades): void {
  const { data, width } = pixels;
  let nOwn = 1;
  if (writeLine(pixels, strip.top, batch, row, frame, shades)) nOwn = HATCH_PX;
  for (let y = strip.top + 1; y < strip.bottom; y++) {
    if (y < strip.top + nOwn) writeLine(pixels, y, batch, row, frame, shades);
    else data.copyWithin(y * width, (y - nOwn) * width, (y - nOwn + 1) * width);
  }
}

/** All rows of the bands; what has no box stays transparent. */
export function fillPixels(pixels: Pixels, batch: InstanceBatch, frame: Frame, bands: readonly Band[], shades: Shades): void {
  pixels.data.fill(0);
  for (const { topPx, bottomPx, scrollPx } of bands) {
    const [first, last] = [Math.round(topPx * frame.pixelRatio), Math.min(Math.round(bottomPx * frame.pixelRatio), pixels.height)];
    for (let row = 0; row < batch.rowTop.length; row++) {
      const rowTop = batch.rowTop[row] as number;
      const top = Math.round((rowTop - scrollPx) * frame.pixelRatio);
      const bottom = top + Math.round(((batch.rowBottom[row] as number) - rowTop) * frame.pixelRatio);
      if (bottom > first && top < last) fillRow(pixels, { top: Math.max(top, first), bottom: Math.min(bottom, last) }, batch, row, frame, shades);
    }
  }
}

class Canvas2dRenderer implements BoxRenderer {
  readonly kind = 'canvas2d';
  private batch: InstanceBatch | null = null;
  private shades: Shades = { ground: new Uint32Array(0), line: new Uint32Array(0) };
  private image: ImageData | null = null;
  private pixels: Pixels = { data: new Uint32Array(0), width: 0, height: 0 };

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly context: CanvasRenderingContext2D,
  ) {}

  setColors(colors: BoxColors): void {
    this.shades = shadesOf(colors);
  }

  setBatch(batch: InstanceBatch): void {
    this.batch = batch;
  }

  /** Replaces all that is on the canvas. */
  draw(frame: Frame, bands: readonly Band[]): void {
    fitCanvas(this.canvas, frame);
    const { width, height } = this.canvas;
    if (!this.image || this.pixels.width !== width || this.pixels.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.pixels = { data: new Uint32Array(this.image.data.buffer), width, height };
    }
    if (this.batch) fillPixels(this.pixels, this.batch, frame, bands, this.shades);
    this.context.putImageData(this.image, 0, 0);
  }

  dispose(): void {
    this.batch = null;
    this.image = null;
  }
}

export function canvas2dRenderer(canvas: HTMLCanvasElement): BoxRenderer | null {
  // Read back by putImageData's kind of work: a canvas in main memory.
  const context = canvas.getContext('2d', { willReadFrequently: true });
  return context ? new Canvas2dRenderer(canvas, context) : null;
}
