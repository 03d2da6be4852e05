/** A canvas that fills its box, is drawn anew as its size, the theme or its content change, and tells where the pointer is. */
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { tokenColor } from '../../base/color';
import { isDark } from '../../base/theme';

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
  /** A wheel turned with Ctrl or after a click into the canvas: deltaY in pixels. */
  onWheel?: (spot: Spot, delta: number) => void;
}

const DRAG_FROM_PX = 5;

function spotOf(event: MouseEvent): Spot {
  const { left, top, width, height } = (event.currentTarget as Element).getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top, width, height };
}

function useWidth(box: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const read = (): void => setWidth(Math.round(element.getBoundingClientRect().width));
    const watch = new ResizeObserver(read);
    watch.observe(element);
    read();
    return () => watch.disconnect();
  }, []);
  return width;
}

export function Canvas(props: CanvasProps): VNode {
  const { height, label, draw } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(canvas);
  const latest = useRef(props);
  latest.current = props;
  const [drag, setDrag] = useState<{ from: Spot; to: Spot } | null>(null);
  const dark = isDark.value;
  useLayoutEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context || !width) return;
    const scale = window.devicePixelRatio || 1;
    element.width = Math.round(width * scale);
    element.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
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
      context.globalAlpha = 1;
    }
  }, [draw, width, height, dark, drag]);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const onWheel = (event: WheelEvent): void => {
      if (!latest.current.onWheel || !(event.ctrlKey || document.activeElement === element)) return;
      event.preventDefault();
      latest.current.onWheel(spotOf(event), event.deltaY * (event.deltaMode === 1 ? 16 : 1));
    };
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  }, []);
  const end = (event: PointerEvent): void => {
    const spot = spotOf(event);
    const isDrag = drag && Math.abs(spot.x - drag.from.x) >= DRAG_FROM_PX;
    setDrag(null);
    if (isDrag && props.onDrag) props.onDrag(drag.from, spot);
    else props.onPick?.(spot);
  };
  return (
    <canvas
      ref={canvas}
      class="mv-canvas"
      style={{ height: `${height}px` }}
      role="img"
      aria-label={label}
      tabIndex={-1}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        if (props.onDrag) setDrag({ from: spotOf(event), to: spotOf(event) });
      }}
      onPointerMove={(event) => {
        if (drag) setDrag({ from: drag.from, to: spotOf(event) });
        props.onPoint?.(spotOf(event));
      }}
      onPointerUp={end}
      onPointerCancel={() => setDrag(null)}
      onPointerLeave={() => props.onPoint?.(null)}
    />
  );
}
