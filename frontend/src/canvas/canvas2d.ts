/**
 * Draws boxes without WebGL2: where it is missing, emulated, or its context was lost. Without a GPU a canvas
 * draws each rectangle on the main thread, about 0.5 µs each, which is too slow for the 20,000 boxes of a
 * full screen. Boxes of a row share their height, so one line of pixels is written per row (four with
 * hatching) and copied downward: the cost of a frame is bounded by the screen, not by the trace.
 */

import {
  DIAMOND_PX,
  DIM,
  firstInstanceFrom,
  INSTANT,
  LEAST_DIAMOND_PX,
  MERGED,
  type InstanceBatch,
} from './boxes';
import {
  DIM_FILL,
  fitCanvas,
  GAP_FROM_PX,
  HATCH_FILL,
  HATCH_PX,
  MERGED_FILL,
  mix,
  type Band,
  type BoxColors,
  type BoxRenderer,
  type Frame,
  type Rgb,
} from './renderer';

/** A style index × 4 + flags, without INSTANT. */
const FLAGS = [0, MERGED, DIM, MERGED | DIM] as const;

/** As a pixel in memory: red in the lowest byte, opaque. */
export function packed([red, green, blue]: Rgb): number {
  const byte = (share: number): number => Math.round(Math.min(Math.max(share, 0), 1) * 255);
  return ((255 << 24) | (byte(blue) << 16) | (byte(green) << 8) | byte(red)) >>> 0;
}

/**
 * Pixels of the two shades of each style: the ground, and the hatching's lines (the same where it is not
 * merged).
 */
export interface Shades {
  readonly ground: Uint32Array;
  readonly line: Uint32Array;
  /** Around diamonds. */
  readonly background: number;
}

export function shadesOf({ fills, background }: BoxColors): Shades {
  const of = (shareOf: (isMerged: boolean) => number): Uint32Array =>
    Uint32Array.from(
      fills.flatMap((fill) =>
        FLAGS.map((flags) =>
          packed(mix(fill, background, shareOf((flags & MERGED) !== 0) * (flags & DIM ? DIM_FILL : 1))),
        ),
      ),
    );
  return {
    ground: of((isMerged) => (isMerged ? MERGED_FILL : 1)),
    line: of((isMerged) => (isMerged ? HATCH_FILL : 1)),
    background: packed(background),
  };
}

export interface Pixels {
  readonly data: Uint32Array;
  readonly width: number;
  readonly height: number;
}

/** The position of a row, in device pixels, and which part of it is visible. */
interface Strip {
  readonly top: number;
  readonly bottom: number;
}

/**
 * The hatched stretches of the current row: left, right and the line's shade, three numbers each. One list
 * reused for all rows.
 */
let hatched = new Uint32Array(3 * 4096);
let nHatched = 0;

function addHatched(left: number, right: number, line: number): void {
  if (nHatched + 3 > hatched.length) {
    const longer = new Uint32Array(2 * hatched.length);
    longer.set(hatched);
    hatched = longer;
  }
  hatched[nHatched] = left;
  hatched[nHatched + 1] = right;
  hatched[nHatched + 2] = line;
  nHatched += 3;
}

/** A box drawn over the end of the last hatched stretch removes that end and leaves the rest. */
function uncover(left: number, right: number): void {
  const last = nHatched - 3;
  const lastRight = last < 0 ? left : (hatched[last + 1] as number);
  if (lastRight <= left) return;
  hatched[last + 1] = left;
  if (lastRight > right) addHatched(right, lastRight, hatched[last + 2] as number);
}

/**
 * The end of the frame from originPs. Instances start at float32 numbers, so the last one may be rounded up past
 * the exact end: it counts as the end then, too.
 */
function windowEnd(batch: InstanceBatch, frame: Frame): number {
  const to = frame.endPs - batch.originPs;
  return Math.max(to, Math.fround(to));
}

/** Writes one line of a row, only the grounds of its boxes, and records hatched stretches in `hatched`. */
function writeLine(
  pixels: Pixels,
  y: number,
  batch: InstanceBatch,
  row: number,
  frame: Frame,
  shades: Shades,
): void {
  const { data, width } = pixels;
  const { floats, marks } = batch;
  const perPs = width / (frame.endPs - frame.startPs);
  const from = frame.startPs - batch.originPs;
  const to = windowEnd(batch, frame);
  const last = batch.rowFirst[row + 1] as number;
  const lineStart = y * width;
  nHatched = 0;
  for (let i = firstInstanceFrom(batch, row, from); i < last; i++) {
    const start = floats[4 * i] as number;
    if (start > to) break;
    const rounded = Math.round((start - from) * perPs);
    // A box that begins where the window ends, such as the trace's last instant, gets the last pixel.
    const left = Math.max(rounded === width ? width - 1 : rounded, -GAP_FROM_PX);
    let right = Math.min(Math.round(((floats[4 * i + 1] as number) - from) * perPs), width + GAP_FROM_PX);
    right = right - left >= GAP_FROM_PX ? right - 1 : Math.max(right, left + 1);
    const flags = marks[16 * i + 13] as number;
    if ((flags & INSTANT) !== 0) continue;
    const look = (marks[16 * i + 12] as number) * 4 + flags;
    const ground = shades.ground[look] as number;
    const seenLeft = Math.max(left, 0);
    const seenRight = Math.min(right, width);
    const end = lineStart + seenRight;
    for (let at = lineStart + seenLeft; at < end; at++) data[at] = ground;
    if (seenLeft >= seenRight) continue;
    uncover(seenLeft, seenRight);
    if ((flags & MERGED) !== 0) addHatched(seenLeft, seenRight, shades.line[look] as number);
  }
}

/**
 * The slanted lines of one line of pixels: those where (x + y) modulo the hatching's width is in its first
 * half.
 */
function hatchLine({ data, width }: Pixels, y: number): void {
  for (let i = 0; i < nHatched; i += 3) {
    const left = hatched[i] as number;
    const right = hatched[i + 1] as number;
    const line = hatched[i + 2] as number;
    for (let x = left - ((left + y) % HATCH_PX); x < right; x += HATCH_PX) {
      const end = y * width + Math.min(x + HATCH_PX / 2, right);
      for (let at = y * width + Math.max(x, left); at < end; at++) data[at] = line;
    }
  }
}

function fillRow(
  pixels: Pixels,
  strip: Strip,
  batch: InstanceBatch,
  row: number,
  frame: Frame,
  shades: Shades,
): void {
  const { data, width } = pixels;
  const { top, bottom } = strip;
  writeLine(pixels, top, batch, row, frame, shades);
  const nOwn = nHatched > 0 ? Math.min(HATCH_PX, bottom - top) : 1;
  for (let y = top + 1; y < top + nOwn; y++) data.copyWithin(y * width, top * width, (top + 1) * width);
  if (nHatched > 0) for (let y = top; y < top + nOwn; y++) hatchLine(pixels, y);
  for (let y = top + nOwn; y < bottom; y += nOwn)
    data.copyWithin(y * width, top * width, (top + Math.min(nOwn, bottom - y)) * width);
}

/** The instants of a row as diamonds with an edge of background, as large as they have room. */
function drawDiamonds(
  { data, width }: Pixels,
  rowSpan: Strip,
  seen: Strip,
  batch: InstanceBatch,
  row: number,
  frame: Frame,
  shades: Shades,
): void {
  const { floats, marks } = batch;
  const perPs = width / (frame.endPs - frame.startPs);
  const from = frame.startPs - batch.originPs;
  const reach = DIAMOND_PX * frame.pixelRatio;
  const to = windowEnd(batch, frame) + reach / perPs;
  const last = batch.rowFirst[row + 1] as number;
  const [middleY, bottom] = [(rowSpan.top + rowSpan.bottom - 1) / 2, rowSpan.bottom - 1];
  const least = LEAST_DIAMOND_PX * frame.pixelRatio;
  for (let i = firstInstanceFrom(batch, row, from - reach / perPs); i < last; i++) {
    const start = floats[4 * i] as number;
    if (start > to) break;
    const flags = marks[16 * i + 13] as number;
    if ((flags & INSTANT) === 0) continue;
    const middle = Math.min(Math.round((start - from) * perPs), width - 1);
    const ground = shades.ground[(marks[16 * i + 12] as number) * 4 + (flags & ~INSTANT)] as number;
    const wide = Math.min(Math.max(((floats[4 * i + 1] as number) - start) * perPs, least), reach);
    const tall = Math.min(wide, (bottom - rowSpan.top) / 2);
    const share = (wide - least) / (reach - least);
    const center = middleY * share + (bottom - tall) * (1 - share);
    const seenBottom = Math.min(seen.bottom, Math.floor(center + tall + 1) + 1);
    for (let y = Math.max(seen.top, Math.ceil(center - tall - 1)); y < seenBottom; y++) {
      const spread = Math.round(wide * (1 - Math.abs(y - center) / tall));
      const [left, right] = [middle - spread, middle + spread];
      for (let x = Math.max(left - 1, 0); x <= Math.min(right + 1, width - 1); x++)
        data[y * width + x] = x < left || x > right ? shades.background : ground;
    }
  }
}

/** All rows of the bands; pixels without a box stay transparent. */
export function fillPixels(
  pixels: Pixels,
  batch: InstanceBatch,
  frame: Frame,
  bands: readonly Band[],
  shades: Shades,
): void {
  pixels.data.fill(0);
  for (const { topPx, bottomPx, scrollPx } of bands) {
    const [first, last] = [
      Math.round(topPx * frame.pixelRatio),
      Math.min(Math.round(bottomPx * frame.pixelRatio), pixels.height),
    ];
    for (let row = 0; row < batch.rowTop.length; row++) {
      const rowTop = batch.rowTop[row] as number;
      const top = Math.round((rowTop - scrollPx) * frame.pixelRatio);
      const bottom = top + Math.round(((batch.rowBottom[row] as number) - rowTop) * frame.pixelRatio);
      if (bottom <= first || top >= last) continue;
      const seen = { top: Math.max(top, first), bottom: Math.min(bottom, last) };
      fillRow(pixels, seen, batch, row, frame, shades);
      if (batch.hasInstants) drawDiamonds(pixels, { top, bottom }, seen, batch, row, frame, shades);
    }
  }
}

class Canvas2dRenderer implements BoxRenderer {
  readonly kind = 'canvas2d';
  private batch: InstanceBatch | null = null;
  private shades: Shades = { ground: new Uint32Array(0), line: new Uint32Array(0), background: 0 };
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

  /** Overwrites the whole canvas. */
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
  // putImageData is fastest on a canvas in main memory.
  const context = canvas.getContext('2d', { willReadFrequently: true });
  return context ? new Canvas2dRenderer(canvas, context) : null;
}
