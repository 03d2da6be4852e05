/** The buffers at the peak side by side, each as wide as it is large: in program order or by size. Hover marks a buffer, a click keeps it. */
import type { VNode } from 'preact';
import { useCallback, useMemo } from 'preact/hooks';
import { format } from '../../base/units';
import { Canvas, type Pen, type Spot } from './canvas';
import { boxAt, edgesOf, inOrder, type Buffer, type Colours, type Order } from './model';

const HEIGHT_PX = 58;
const NAME_FROM_PX = 56;

interface StripProps {
  title: string;
  order: Order;
  buffers: readonly Buffer[];
  colours: Colours;
  marked: Buffer | null;
  onHover: (buffer: Buffer | null) => void;
  onPick: (buffer: Buffer | null) => void;
}

function drawStrip({ context, width, height, color }: Pen, buffers: readonly Buffer[], edges: Float64Array, colours: Colours, marked: Buffer | null): void {
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  buffers.forEach((buffer, i) => {
    const [left, right] = [(edges[i] ?? 0) * width, (edges[i + 1] ?? 0) * width];
    const isMarked = marked?.id === buffer.id;
    if (right - left < 0.3 && !isMarked) return;
    context.globalAlpha = marked && !isMarked ? 0.5 : 0.9;
    context.fillStyle = color(colours.token(buffer));
    context.fillRect(left, 2, Math.max(right - left - (right - left > 3 ? 1 : 0), isMarked ? 2 : 0.5), height - 4);
    if (right - left > NAME_FROM_PX) {
      context.save();
      context.beginPath();
      context.rect(left, 0, right - left - 5, height);
      context.clip();
      context.globalAlpha = 1;
      context.fillStyle = color('--bg');
      context.fillText(buffer.instruction, left + 6, height / 2 - 8);
      context.fillText(format(buffer.sizeBytes, 'bytes'), left + 6, height / 2 + 8);
      context.restore();
    }
    if (isMarked) {
      context.globalAlpha = 1;
      context.lineWidth = 2;
      context.strokeStyle = color('--text');
      context.strokeRect(left + 1, 1, Math.max(1, right - left - 2), height - 2);
    }
  });
  context.globalAlpha = 1;
}

export function Strip({ title, order, buffers, colours, marked, onHover, onPick }: StripProps): VNode {
  const shown = useMemo(() => inOrder(buffers, order), [buffers, order]);
  const edges = useMemo(() => edgesOf(shown), [shown]);
  const under = (spot: Spot): Buffer | null => shown[boxAt(edges, spot.x / spot.width)] ?? null;
  const draw = useCallback((pen: Pen) => drawStrip(pen, shown, edges, colours, marked), [shown, edges, colours, marked]);
  return (
    <figure class="mv-strip">
      <figcaption>{title}</figcaption>
      <Canvas
        height={HEIGHT_PX}
        label={`${title}: ${shown.length.toLocaleString('en-US')} buffers`}
        draw={draw}
        onPoint={(spot) => onHover(spot ? under(spot) : null)}
        onPick={(spot) => onPick(under(spot))}
      />
    </figure>
  );
}
