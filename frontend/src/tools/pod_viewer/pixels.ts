/** Cells of the map as pixels: one picture of all cores; a step changes only its colors. */
import { shareOf, type Layout } from './model';

const N_COLORS = 128;
export const MARGIN_PX = 4;
const OPAQUE = 255;

/** A layout in a box of that size; `cell`: pixels of the page by cell. */
export interface Placed extends Layout {
  cell: number;
  width: number;
  height: number;
}

/**
 * Colors from one to the other (channels 0–1) as pixels, whose bytes are red, green, blue, opacity in memory.
 */
export function ramp(from: readonly number[], to: readonly number[], n = N_COLORS): Uint32Array {
  const bytes = new Uint8ClampedArray(4 * n);
  for (let i = 0; i < n; i++) {
    for (let channel = 0; channel < 3; channel++) {
      const [low, high] = [from[channel] as number, to[channel] as number];
      bytes[4 * i + channel] = Math.round(OPAQUE * (low + (high - low) * (i / (n - 1))));
    }
    bytes[4 * i + 3] = OPAQUE;
  }
  return new Uint32Array(bytes.buffer);
}

/** Left, top, right and bottom of each core in the screen's pixels, one after the other. */
export function cellRects(layout: Placed, ratio: number): Int32Array {
  const gap = layout.cell > 6 ? 1 : 0;
  const rects = new Int32Array(4 * layout.x.length);
  for (let core = 0; core < layout.x.length; core++) {
    const [x, y] = [
      MARGIN_PX + (layout.x[core] as number) * layout.cell,
      MARGIN_PX + (layout.y[core] as number) * layout.cell,
    ];
    rects.set(
      [x, y, x + layout.cell - gap, y + layout.cell - gap].map((edge) => Math.round(edge * ratio)),
      4 * core,
    );
  }
  return rects;
}

/** Colors the cells of a picture that is `wide` pixels wide; the gaps between them stay. */
export function paintCells(
  pixels: Uint32Array,
  wide: number,
  rects: Int32Array,
  values: Float64Array,
  range: readonly [number, number],
  colors: Uint32Array,
): void {
  const high = wide ? pixels.length / wide : 0;
  for (let core = 0; core < values.length; core++) {
    const color = colors[Math.round(shareOf(values[core] as number, range) * (colors.length - 1))] as number;
    const [left, right] = [rects[4 * core] as number, Math.min(rects[4 * core + 2] as number, wide)];
    const bottom = Math.min(rects[4 * core + 3] as number, high);
    for (let y = rects[4 * core + 1] as number; y < bottom; y++)
      pixels.fill(color, y * wide + left, y * wide + right);
  }
}
