/**
 * The whole trace in a strip: activity over time, and the position of the window.
 *
 *   density[x] = share of rows at depth 0 that are busy in column x
 *
 * The density comes from the loaded boxes (the whole trace at screen resolution), once per trace and width.
 */

import type { Boxes } from './boxes';
import { cssOf, fitCanvas, type Rgb } from './renderer';
import type { Viewport } from './viewport';

export interface MinimapLook {
  readonly device: Rgb;
  readonly host: Rgb;
  readonly background: Rgb;
  readonly accent: Rgb;
}

/** Utilization of one kind of tracks, a share per column. */
export interface Layer {
  readonly isDevice: boolean;
  readonly share: Float32Array;
}

/**
 * Utilization of each of nColumns equal stretches of [0, durationPs], relative to the busiest: 0–1. Only rows
 * in `rows` count.
 */
export function densityOf(
  boxes: Boxes,
  rows: readonly number[],
  durationPs: number,
  nColumns: number,
): Float32Array {
  const busyPs = new Float32Array(nColumns);
  const columnPs = Math.max(durationPs, 1) / nColumns;
  for (const row of rows) {
    const last = boxes.rowFirst[row + 1] ?? 0;
    for (let i = boxes.rowFirst[row] ?? 0; i < last; i++)
      addBox(busyPs, columnPs, boxes.startPs[i] as number, boxes.durationPs[i] as number);
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

/**
 * One layer for the devices and one for the hosts: the mean of their parts, for the host relative to its
 * busiest column.
 */
export function layersOf(parts: readonly Layer[]): Layer[] {
  return [true, false].flatMap((isDevice): Layer[] => {
    const members = parts.filter((part) => part.isDevice === isDevice);
    const first = members[0];
    if (!first) return [];
    const share = first.share.map(
      (_, column) => members.reduce((sum, part) => sum + (part.share[column] ?? 0), 0) / members.length,
    );
    const most = share.reduce((a, b) => Math.max(a, b), 0);
    return [{ isDevice, share: most > 0 ? share.map((each) => each / most) : share }];
  });
}

/** The dragged part of the window: an edge, all of it, or the area outside (the window then jumps there). */
export interface Grab {
  readonly part: 'start' | 'end' | 'window' | 'outside';
  readonly view: Viewport;
  /** Where the drag began, in picoseconds. */
  readonly fromPs: number;
}

const EDGE_PX = 6;

export function grabAt(view: Viewport, durationPs: number, x: number, widthPx: number): Grab {
  const perPs = widthPx / Math.max(durationPs, 1);
  const [left, right] = [view.startPs * perPs, view.endPs * perPs];
  const isNarrow = right - left < 2 * EDGE_PX;
  const fromPs = x / perPs;
  const inner = isNarrow ? 0 : EDGE_PX / 2;
  if (x >= left - EDGE_PX && x < left + inner) return { part: 'start', view, fromPs };
  if (x > right - inner && x <= right + EDGE_PX) return { part: 'end', view, fromPs };
  return { part: x >= left && x <= right ? 'window' : 'outside', view, fromPs };
}

/** The window after the pointer has been dragged to x. */
export function grabbed(
  { part, view, fromPs }: Grab,
  durationPs: number,
  x: number,
  widthPx: number,
): Viewport {
  const atPs = Math.min(Math.max((x / Math.max(widthPx, 1)) * durationPs, 0), durationPs);
  if (part === 'start') return { startPs: Math.min(atPs, view.endPs), endPs: Math.max(atPs, view.endPs) };
  if (part === 'end') return { startPs: Math.min(atPs, view.startPs), endPs: Math.max(atPs, view.startPs) };
  const span = view.endPs - view.startPs;
  const startPs = part === 'window' ? view.startPs + atPs - fromPs : atPs - span / 2;
  return { startPs, endPs: startPs + span };
}

/** One path per density: a frame then fills once instead of once per column. */
const silhouettes = new WeakMap<Float32Array, Path2D>();

function silhouetteOf(density: Float32Array, size: MinimapSize): Path2D {
  const silhouette = silhouettes.get(density);
  if (silhouette) return silhouette;
  const path = new Path2D();
  const columnPx = size.widthPx / Math.max(density.length, 1);
  density.forEach((share, column) => {
    const height = share > 0 ? Math.max(1, share * (size.heightPx - 4)) : 0;
    if (height > 0) path.rect(column * columnPx, size.heightPx - height, columnPx, height);
  });
  silhouettes.set(density, path);
  return path;
}

/** The layers' shares apply to this size: recompute them when the width changes. */
export function drawMinimap(
  canvas: HTMLCanvasElement,
  size: MinimapSize,
  layers: readonly Layer[],
  view: Viewport,
  durationPs: number,
  look: MinimapLook,
  /** Starts and ends of stretches with search hits. */
  hitStretches: Float64Array = new Float64Array(0),
): void {
  const context = canvas.getContext('2d');
  if (!context) return;
  fitCanvas(canvas, { ...size, startPs: 0, endPs: 1, scrollPx: 0, pinScrollPx: 0 });
  context.setTransform(size.pixelRatio, 0, 0, size.pixelRatio, 0, 0);
  context.clearRect(0, 0, size.widthPx, size.heightPx);
  for (const { isDevice, share } of layers) {
    context.globalAlpha = 0.6;
    context.fillStyle = cssOf(isDevice ? look.device : look.host);
    context.fill(silhouetteOf(share, size));
  }
  context.globalAlpha = 1;
  drawHitBars(context, size, hitStretches, durationPs, look);
  drawHandle(context, size, view, durationPs, look);
}

function drawHitBars(
  context: CanvasRenderingContext2D,
  size: MinimapSize,
  stretches: Float64Array,
  durationPs: number,
  look: MinimapLook,
): void {
  const perPs = size.widthPx / Math.max(durationPs, 1);
  context.fillStyle = cssOf(look.accent);
  for (let i = 0; i + 1 < stretches.length; i += 2) {
    const left = (stretches[i] as number) * perPs;
    const width = Math.max(1.5, (stretches[i + 1] as number) * perPs - left);
    context.fillRect(left, 3, width, size.heightPx - 6);
  }
}

function drawHandle(
  context: CanvasRenderingContext2D,
  size: MinimapSize,
  view: Viewport,
  durationPs: number,
  look: MinimapLook,
): void {
  const perPs = size.widthPx / Math.max(durationPs, 1);
  const left = Math.min(view.startPs * perPs, size.widthPx - 3);
  const width = Math.max((view.endPs - view.startPs) * perPs, 3);
  context.globalAlpha = 0.7;
  context.fillStyle = cssOf(look.background);
  context.fillRect(0, 0, left, size.heightPx);
  context.fillRect(left + width, 0, size.widthPx - left - width, size.heightPx);
  context.globalAlpha = 1;
  context.strokeStyle = context.fillStyle = cssOf(look.accent);
  context.lineWidth = 1.5;
  context.strokeRect(Math.max(1, left), 1, Math.min(width, size.widthPx - 2), size.heightPx - 2);
  for (const edge of [Math.max(1, left), Math.min(left + width, size.widthPx - 1)]) {
    context.fillRect(edge - 2, size.heightPx / 2 - 6, 4, 12);
  }
}
