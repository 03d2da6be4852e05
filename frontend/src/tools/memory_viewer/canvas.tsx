/** A canvas that fills its box, is drawn anew as its size, the theme or its content change, and tells where the pointer is. */
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
  draw: (pen: Pen) => void;
  onPoint?: (spot: Spot | null) => void;
  onPick?: (spot: Spot) => void;
  /** A drag from one spot to another. */
  onDrag?: (from: Spot, to: Spot) => void;
  /** A wheel turned with Ctrl: deltaY in pixels. */
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

/** Draws whenever something that the picture depends on has changed. */
function usePicture(canvas: { current: HTMLCanvasElement | null }, { height, draw }: CanvasProps, drag: Drag | null): void {
  const width = useWidth(canvas);
  useLayoutEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context || !width) return;
    const scale = window.devicePixelRatio || 1;
    element.width = Math.round(width * scale);
    element.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const known = new Map<string, string>();
    const color = (token: string): string => {
      const value = known.get(token) ?? tokenColor(token);
      known.set(token, value);
      return value;
    };
    context.font = `11px ${tokenColor('--font')}`;
    draw({ context, width, height, color });
    if (drag) {
      context.fillStyle = color('--accent');
      context.globalAlpha = 0.15;
      context.fillRect(Math.min(drag.from.x, drag.to.x), 0, Math.abs(drag.to.x - drag.from.x), height);
    }
  }, [draw, width, height, isDark.value, drag]);
}

export function Canvas(props: CanvasProps): VNode {
  const { height, label, onDrag, onPick, onPoint } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const [drag, setDrag] = useState<Drag | null>(null);
  usePicture(canvas, props, drag);
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
  const hands = { onPointerDown: press, onPointerMove: move, onPointerUp: release, onPointerCancel: () => setDrag(null), onPointerLeave: () => onPoint?.(null) };
  return <canvas ref={canvas} class="mv-canvas" style={{ height: `${height}px` }} role="img" aria-label={label} {...hands} />;
}
