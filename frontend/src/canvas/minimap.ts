/**
 * The whole trace in a strip: how much is going on at each moment, and where the window is.
 *
 *   density[x] = share of rows at depth 0 that are busy in column x
 *
 * The density comes from the boxes at hand (the whole trace at screen resolution), once per trace and width.
 */

import type { Boxes } from './boxes';
import { cssOf, fitCanvas, mix, type Rgb } from './renderer';
import type { Viewport } from './viewport';

export interface MinimapLook {
  readonly fill: Rgb;
  readonly background: Rgb;
  readonly accent: Rgb;
}

/** How busy each of nColumns equal stretches of [0, durationPs] is, relative to the busiest: 0–1. Only rows in `rows` count. */
export function densityOf(boxes: Boxes, rows: readonly number[], durationPs: number, nColumns: number): Float32Array {
  const busyPs = new Float32Array(nColumns);
  const columnPs = Math.max(durationPs, 1) / nColumns;
  for (const row of rows) {
    const last = boxes.rowFirst[row + 1] ?? 0;
    for (let i = boxes.rowFirst[row] ?? 0; i < last; i++) addBox(busyPs, columnPs, boxes.startPs[i] as number, boxes.durationPs[i] as number);
  }
  const most = busyPs.reduce((a, b) => Math.max(a, b), 0);
  return most > 0 ? busyPs.map((busy) => busy / most) : busyPs;
}

function addBox(busyPs: Float32Array, columnPs: number, startPs: number, durationPs: number): void {
  const endPs = startPs + durationPs;
  const last = Math.min(busyPs.length - 1, Math.floor(endPs / columnPs));
  for (let column = Math.max(0, Math.floor(startPs / columnPs)); column <= last; column++) {
    const within = Math.min(endPs, (column + 1) * columnPs) - Math.max(startPs, column * columnPs);
    busyPs[column] = (busyPs[column] as number) + Math.max(within, 0);
  }
}

export interface MinimapSize {
  readonly widthPx: number;
  readonly heightPx: number;
  readonly pixelRatio: number;
}

/** One path per density: a frame then fills once instead of once a column. */
const silhouettes = new WeakMap<Float32Array, Path2D>();

function silhouetteOf(density: Float32Array, size: MinimapSize): Path2D {
  const known = silhouettes.get(density);
  if (known) return known;
  const path = new Path2D();
  const columnPx = size.widthPx / Math.max(density.length, 1);
  density.forEach((share, column) => {
    const height = share > 0 ? Math.max(1, share * (size.heightPx - 4)) : 0;
    if (height > 0) path.rect(column * columnPx, size.heightPx - height, columnPx, height);
  });
  silhouettes.set(density, path);
  return path;
}

/** `density` belongs to this size: make it anew when the width changes. */
export function drawMinimap(canvas: HTMLCanvasElement, size: MinimapSize, density: Float32Array, view: Viewport, durationPs: number, look: MinimapLook): void {
  const context = canvas.getContext('2d');
  if (!context) return;
  fitCanvas(canvas, { ...size, startPs: 0, endPs: 1, scrollPx: 0 });
  context.setTransform(size.pixelRatio, 0, 0, size.pixelRatio, 0, 0);
  context.clearRect(0, 0, size.widthPx, size.heightPx);
  context.fillStyle = cssOf(mix(look.fill, look.background, 0.6));
  context.fill(silhouetteOf(density, size));
  const left = (view.startPs / Math.max(durationPs, 1)) * size.widthPx;
  const width = Math.max(((view.endPs - view.startPs) / Math.max(durationPs, 1)) * size.widthPx, 3);
  context.globalAlpha = 0.7;
  context.fillStyle = cssOf(look.background);
  context.fillRect(0, 0, left, size.heightPx);
  context.fillRect(left + width, 0, size.widthPx - left - width, size.heightPx);
  context.globalAlpha = 1;
  context.strokeStyle = cssOf(look.accent);
  context.lineWidth = 2;
  context.strokeRect(Math.max(1, left), 1, Math.min(width, size.widthPx - 2), size.heightPx - 2);
}
