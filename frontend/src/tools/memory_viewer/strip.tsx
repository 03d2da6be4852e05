/**
 * The buffers at the peak side by side, each as wide as it is large: in program order or by size. Hover
 * highlights a buffer, a click pins it.
 */
import type { VNode } from 'preact';
import { useCallback, useMemo } from 'preact/hooks';
import { format } from '../../base/units';
import { TextFitter } from '../../canvas/text';
import { Canvas, type Pen, type Spot } from './canvas';
import { boxAt, edgesOf, inOrder, type Buffer, type Colors, type Order } from './model';

const HEIGHT_PX = 58;
const NAME_FROM_PX = 56;
/** Narrower boxes are invisible. */
const LEAST_PX = 0.3;
/** Opacity of the buffers while one is highlighted. */
const OTHERS_ALPHA = 0.55;

interface StripProps {
  title: string;
  order: Order;
  buffers: readonly Buffer[];
  colors: Colors;
  marked: Buffer | null;
  onHover: (buffer: Buffer | null) => void;
  onPick: (buffer: Buffer | null) => void;
}

type Box = [left: number, right: number];

let fitter: { font: string; fit: TextFitter } | null = null;

function fitted(context: CanvasRenderingContext2D, text: string, widthPx: number): string {
  if (fitter?.font !== context.font)
    fitter = { font: context.font, fit: new TextFitter((part) => context.measureText(part).width) };
  return fitter.fit.fit(text, widthPx);
}

function drawBuffer(
  { context, height, color }: Pen,
  buffer: Buffer,
  [left, right]: Box,
  colors: Colors,
  leastPx: number,
): void {
  context.globalAlpha = 0.9;
  context.fillStyle = color(colors.token(buffer));
  context.fillRect(left, 2, Math.max(right - left - (right - left > 3 ? 1 : 0), leastPx), height - 4);
  context.globalAlpha = 1;
  if (right - left <= NAME_FROM_PX) return;
  context.fillStyle = color('--bg');
  context.fillText(fitted(context, buffer.instruction, right - left - 11), left + 6, height / 2 - 8);
  context.fillText(
    fitted(context, format(buffer.sizeBytes, 'bytes'), right - left - 11),
    left + 6,
    height / 2 + 8,
  );
}

function drawStrip(
  pen: Pen,
  buffers: readonly Buffer[],
  boxOf: (i: number, width: number) => Box,
  colors: Colors,
): void {
  pen.context.textBaseline = 'middle';
  buffers.forEach((buffer, i) => {
    const box = boxOf(i, pen.width);
    if (box[1] - box[0] >= LEAST_PX) drawBuffer(pen, buffer, box, colors, 0.5);
  });
}

function drawMarked(pen: Pen, buffer: Buffer, [left, right]: Box, colors: Colors): void {
  const { context, height, color } = pen;
  context.textBaseline = 'middle';
  drawBuffer(pen, buffer, [left, right], colors, 2);
  context.lineWidth = 2;
  context.strokeStyle = color('--text');
  context.strokeRect(left + 1, 1, Math.max(1, right - left - 2), height - 2);
}

export function Strip({ title, order, buffers, colors, marked, onHover, onPick }: StripProps): VNode {
  const shown = useMemo(() => inOrder(buffers, order), [buffers, order]);
  const edges = useMemo(() => edgesOf(shown), [shown]);
  const under = (spot: Spot): Buffer | null => shown[boxAt(edges, spot.x / spot.width)] ?? null;
  const boxOf = (i: number, width: number): Box => [(edges[i] ?? 0) * width, (edges[i + 1] ?? 0) * width];
  const ground = useCallback((pen: Pen) => drawStrip(pen, shown, boxOf, colors), [shown, edges, colors]);
  const draw = useCallback(
    (pen: Pen) => {
      const index = marked ? shown.findIndex(({ id }) => id === marked.id) : -1;
      if (index >= 0) drawMarked(pen, shown[index] as Buffer, boxOf(index, pen.width), colors);
    },
    [shown, edges, colors, marked],
  );
  return (
    <figure class="mv-strip">
      <figcaption>{title}</figcaption>
      <Canvas
        height={HEIGHT_PX}
        label={`${title}: ${shown.length.toLocaleString('en-US')} buffers`}
        ground={ground}
        groundAlpha={marked ? OTHERS_ALPHA : 1}
        draw={draw}
        onPoint={(spot) => onHover(spot ? under(spot) : null)}
        onPick={(spot) => onPick(under(spot))}
      />
    </figure>
  );
}
