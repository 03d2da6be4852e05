/**
 * Boxes on a plain 2D canvas: the fallback where WebGL2 is missing or its context was lost. The batch is ordered by look
 * once, so that a frame changes the fill a few dozen times, not once a box.
 */

import type { InstanceBatch } from './boxes';
import { cssOf, fitCanvas, GAP_FROM_PX, HATCH_FILL, HATCH_PX, MAX_STYLES, MERGED_FILL, mix, type BoxColors, type BoxRenderer, type Frame } from './renderer';

const N_LOOKS = MAX_STYLES * 2;

/** Instance numbers ordered by look (style × 2 + is-merged): a counting sort. */
export function orderByLook(batch: InstanceBatch): { order: Uint32Array; first: Uint32Array } {
  const first = new Uint32Array(N_LOOKS + 1);
  for (let i = 0; i < batch.n; i++) {
    const slot = lookOf(batch, i) + 1;
    first[slot] = (first[slot] as number) + 1;
  }
  for (let look = 0; look < N_LOOKS; look++) first[look + 1] = (first[look + 1] as number) + (first[look] as number);
  const next = first.slice();
  const order = new Uint32Array(batch.n);
  for (let i = 0; i < batch.n; i++) {
    const look = lookOf(batch, i);
    const slot = next[look] as number;
    order[slot] = i;
    next[look] = slot + 1;
  }
  return { order, first };
}

function lookOf(batch: InstanceBatch, i: number): number {
  return ((batch.marks[16 * i + 12] as number) % MAX_STYLES) * 2 + (batch.marks[16 * i + 13] as number);
}

class Canvas2dRenderer implements BoxRenderer {
  readonly kind = 'canvas2d';
  private batch: InstanceBatch | null = null;
  private order: Uint32Array = new Uint32Array(0);
  private first: Uint32Array = new Uint32Array(N_LOOKS + 1);
  private looks: (string | CanvasPattern)[] = [];

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly context: CanvasRenderingContext2D,
  ) {}

  setColors(colors: BoxColors): void {
    this.looks = colors.fills.flatMap((fill) => [
      cssOf(fill),
      this.hatching(cssOf(mix(fill, colors.background, MERGED_FILL)), cssOf(mix(fill, colors.background, HATCH_FILL))),
    ]);
  }

  private hatching(ground: string, line: string): string | CanvasPattern {
    const tile = document.createElement('canvas');
    tile.width = tile.height = HATCH_PX;
    const context = tile.getContext('2d');
    if (!context) return ground;
    context.fillStyle = ground;
    context.fillRect(0, 0, HATCH_PX, HATCH_PX);
    context.fillStyle = line;
    for (let y = 0; y < HATCH_PX; y++) {
      for (let k = 0; k < HATCH_PX / 2; k++) context.fillRect((y + k) % HATCH_PX, y, 1, 1);
    }
    return this.context.createPattern(tile, 'repeat') ?? ground;
  }

  setBatch(batch: InstanceBatch): void {
    this.batch = batch;
    ({ order: this.order, first: this.first } = orderByLook(batch));
  }

  draw(frame: Frame): void {
    const { canvas, context, batch } = this;
    fitCanvas(canvas, frame);
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!batch) return;
    for (let look = 0; look < N_LOOKS; look++) {
      const last = this.first[look + 1] as number;
      if (this.first[look] === last) continue;
      context.fillStyle = this.looks[look] ?? this.looks[0] ?? '#888';
      for (let k = this.first[look] as number; k < last; k++) this.fill(batch, this.order[k] as number, frame);
    }
  }

  private fill(batch: InstanceBatch, i: number, frame: Frame): void {
    const perPs = this.canvas.width / (frame.endPs - frame.startPs);
    const from = frame.startPs - batch.originPs;
    const left = Math.round(((batch.floats[4 * i] as number) - from) * perPs);
    const right = Math.round(((batch.floats[4 * i + 1] as number) - from) * perPs);
    if (right < 0 || left > this.canvas.width) return;
    const top = Math.round(((batch.floats[4 * i + 2] as number) - frame.scrollPx) * frame.pixelRatio);
    const height = Math.round((batch.marks[16 * i + 14] as number) * frame.pixelRatio);
    if (top > this.canvas.height || top + height < 0) return;
    const start = Math.max(left, -4);
    const width = Math.min(right, this.canvas.width + 4) - start;
    this.context.fillRect(start, top, width >= GAP_FROM_PX ? width - 1 : Math.max(width, 1), height);
  }

  dispose(): void {
    this.batch = null;
  }
}

export function canvas2dRenderer(canvas: HTMLCanvasElement): BoxRenderer | null {
  const context = canvas.getContext('2d');
  return context ? new Canvas2dRenderer(canvas, context) : null;
}
