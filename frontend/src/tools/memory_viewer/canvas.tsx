/**
 * Two stacked canvases that fill their box and report the pointer's position. The ground is redrawn when its
 * size, the theme or its content changes; the layer above follows the pointer, so that thousands of boxes are
 * not redrawn.
 */
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { tokenColor } from '../../base/color';
import { isDark } from '../../base/theme';
import { useWidth } from '../../widgets/size';

export interface Pen {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  color(token: string): string;
}

export interface Spot {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface CanvasProps {
  height: number;
  label: string;
  /** Draws the part that does not follow the pointer. */
  ground: (pen: Pen) => void;
  /** Opacity of the ground; default 1. */
  groundAlpha?: number;
  /** Draws the part that follows the pointer. */
  draw: (pen: Pen) => void;
  onPoint?: (spot: Spot | null) => void;
  onPick?: (spot: Spot) => void;
  /** A drag from one point to another. */
  onDrag?: (from: Spot, to: Spot) => void;
  /** A turn of the wheel with Ctrl: deltaY in pixels. */
  onWheel?: (spot: Spot, delta: number) => void;
}

const DRAG_FROM_PX = 5;

function spotOf(event: MouseEvent): Spot {
  const { left, top, width, height } = (event.currentTarget as Element).getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top, width, height };
}

interface Drag {
  from: Spot;
  to: Spot;
}

/** A context for an empty canvas of that size; null if the browser gives none. */
function opened(canvas: HTMLCanvasElement, width: number, height: number): Pen | null {
  const context = canvas.getContext('2d');
  if (!context) return null;
  const scale = window.devicePixelRatio || 1;
  const [widthPx, heightPx] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== widthPx || canvas.height !== heightPx) {
    canvas.width = widthPx;
    canvas.height = heightPx;
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.globalAlpha = 1;
  context.font = `11px ${tokenColor('--font')}`;
  const colors = new Map<string, string>();
  const color = (token: string): string => {
    const value = colors.get(token) ?? tokenColor(token);
    colors.set(token, value);
    return value;
  };
  return { context, width, height, color };
}

/** Draws whenever something that the picture depends on has changed. */
function usePicture(
  canvas: { current: HTMLCanvasElement | null },
  size: { width: number; height: number },
  draw: (pen: Pen) => void,
  drag?: Drag | null,
): void {
  const { width, height } = size;
  useLayoutEffect(() => {
    const pen = canvas.current && width ? opened(canvas.current, width, height) : null;
    if (!pen) return;
    draw(pen);
    if (!drag) return;
    pen.context.fillStyle = pen.color('--accent');
    pen.context.globalAlpha = 0.15;
    pen.context.fillRect(Math.min(drag.from.x, drag.to.x), 0, Math.abs(drag.to.x - drag.from.x), height);
  }, [draw, width, height, isDark.value, drag]);
}

export function Canvas(props: CanvasProps): VNode {
  const { height, label, onDrag, onPick, onPoint } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const below = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const [drag, setDrag] = useState<Drag | null>(null);
  const size = { width: useWidth(canvas), height };
  usePicture(below, size, props.ground);
  usePicture(canvas, size, props.draw, drag);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const turn = (event: WheelEvent): void => {
      if (!latest.current.onWheel || !event.ctrlKey) return;
      event.preventDefault();
      latest.current.onWheel(spotOf(event), event.deltaY * (event.deltaMode === 1 ? 16 : 1));
    };
    element.addEventListener('wheel', turn, { passive: false });
    return () => element.removeEventListener('wheel', turn);
  }, []);
  const press = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    if (onDrag) setDrag({ from: spotOf(event), to: spotOf(event) });
  };
  const move = (event: PointerEvent): void => {
    if (drag) setDrag({ from: drag.from, to: spotOf(event) });
    onPoint?.(spotOf(event));
  };
  const release = (event: PointerEvent): void => {
    const spot = spotOf(event);
    const isDrag = drag && Math.abs(spot.x - drag.from.x) >= DRAG_FROM_PX;
    setDrag(null);
    if (isDrag && onDrag) onDrag(drag.from, spot);
    else onPick?.(spot);
  };
  const hands = {
    onPointerDown: press,
    onPointerMove: move,
    onPointerUp: release,
    onPointerCancel: () => setDrag(null),
    onPointerLeave: () => onPoint?.(null),
  };
  return (
    <div class="mv-canvas" style={{ height: `${height}px` }}>
      <canvas ref={below} style={{ opacity: props.groundAlpha ?? 1 }} aria-hidden="true" />
      <canvas ref={canvas} role="img" aria-label={label} {...hands} />
    </div>
  );
}
