/**
 * Boxes on a plain 2D canvas: the fallback where WebGL2 is missing, emulated, or its context was lost. A frame walks the rows
 * in sight only, finds the first box in view by bisection, and sets the fill once per run of boxes of one look.
 */

import { DIM, firstInstanceFrom, MERGED, type InstanceBatch } from './boxes';
import { cssOf, DIM_FILL, fitCanvas, GAP_FROM_PX, HATCH_FILL, HATCH_PX, MERGED_FILL, mix, type Band, type BoxColors, type BoxRenderer, type Frame } from './renderer';

type Fill = string | CanvasPattern;

/** A look is style × 4 + flags. */
const FLAGS = [0, MERGED, DIM, MERGED | DIM] as const;

class Canvas2dRenderer implements BoxRenderer {
  readonly kind = 'canvas2d';
  private batch: InstanceBatch | null = null;
  private looks: Fill[] = [];

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly context: CanvasRenderingContext2D,
  ) {}

  setColors({ fills, background }: BoxColors): void {
    this.looks = fills.flatMap((fill) => FLAGS.map((flags): Fill => {
      const strength = flags & DIM ? DIM_FILL : 1;
      const shade = (share: number): string => cssOf(mix(fill, background, share * strength));
      return flags & MERGED ? this.hatching(shade(MERGED_FILL), shade(HATCH_FILL)) : shade(1);
    }));
  }

  private hatching(ground: string, line: string): Fill {
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
  }

  draw(frame: Frame, bands: readonly Band[]): void {
    const { canvas, context, batch } = this;
    fitCanvas(canvas, frame);
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (!batch) return;
    for (const band of bands) {
      context.save();
      context.beginPath();
      context.rect(0, Math.round(band.topPx * frame.pixelRatio), canvas.width, Math.round((band.bottomPx - band.topPx) * frame.pixelRatio));
      context.clip();
      for (let row = 0; row < batch.rowTop.length; row++) {
        if ((batch.rowTop[row] as number) > band.scrollPx + band.bottomPx || (batch.rowBottom[row] as number) < band.scrollPx + band.topPx) continue;
        this.drawRow(batch, row, frame, band);
      }
      context.restore();
    }
  }

  private drawRow(batch: InstanceBatch, row: number, frame: Frame, band: Band): void {
    const { context, canvas } = this;
    const { floats, marks } = batch;
    const perPs = canvas.width / (frame.endPs - frame.startPs);
    const from = frame.startPs - batch.originPs;
    const to = frame.endPs - batch.originPs;
    const top = Math.round(((batch.rowTop[row] as number) - band.scrollPx) * frame.pixelRatio);
    const height = Math.round(((batch.rowBottom[row] as number) - (batch.rowTop[row] as number)) * frame.pixelRatio);
    const last = batch.rowFirst[row + 1] as number;
    let look = -1;
    for (let i = firstInstanceFrom(batch, row, from); i < last; i++) {
      const start = floats[4 * i] as number;
      if (start > to) break;
      const left = Math.max(Math.round((start - from) * perPs), -4);
      const right = Math.min(Math.round(((floats[4 * i + 1] as number) - from) * perPs), canvas.width + 4);
      if (right < 0) continue;
      const own = (marks[16 * i + 12] as number) * 4 + (marks[16 * i + 13] as number);
      if (own !== look) context.fillStyle = this.looks[(look = own)] ?? '#888';
      const width = right - left;
      context.fillRect(left, top, width >= GAP_FROM_PX ? width - 1 : Math.max(width, 1), height);
    }
  }

  dispose(): void {
    this.batch = null;
  }
}

export function canvas2dRenderer(canvas: HTMLCanvasElement): BoxRenderer | null {
  const context = canvas.getContext('2d');
  return context ? new Canvas2dRenderer(canvas, context) : null;
}
