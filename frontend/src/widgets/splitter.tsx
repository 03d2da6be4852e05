/** Two panes with a handle between them; the side pane's width is remembered under a name. */
import type { ComponentChildren, VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import './splitter.css';

const KEY_STEP_PX = 16;

export interface SplitProps {
  /** Names the width in localStorage. */
  name: string;
  label: string;
  main: ComponentChildren;
  /** The pane at the right; absent: the main pane alone. */
  side?: ComponentChildren;
  initialPx?: number;
  minPx?: number;
  maxPx?: number;
}

function rememberedWidth(name: string, initialPx: number): number {
  const text = window.localStorage.getItem(`tpuprof.split.${name}`);
  const width = Number(text);
  return text && Number.isFinite(width) ? width : initialPx;
}

export function Split({ name, label, main, side, initialPx = 320, minPx = 200, maxPx = 800 }: SplitProps): VNode {
  const [width, setWidth] = useState(() => rememberedWidth(name, initialPx));
  const drag = useRef<{ x: number; width: number } | null>(null);
  const change = (px: number): void => {
    const clamped = Math.round(Math.min(maxPx, Math.max(minPx, px)));
    setWidth(clamped);
    window.localStorage.setItem(`tpuprof.split.${name}`, String(clamped));
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowLeft' ? KEY_STEP_PX : event.key === 'ArrowRight' ? -KEY_STEP_PX : 0;
    if (!step) return;
    event.preventDefault();
    change(width + step);
  };
  const onDown = (event: PointerEvent): void => {
    drag.current = { x: event.clientX, width };
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
  };
  const onMove = (event: PointerEvent): void => {
    if (drag.current) change(drag.current.width + drag.current.x - event.clientX);
  };
  return (
    <div class="split">
      <div class="split-main">{main}</div>
      {side && (
        <>
          <div
            class="splitter"
            role="separator"
            tabIndex={0}
            aria-label={label}
            aria-orientation="vertical"
            aria-valuenow={width}
            aria-valuemin={minPx}
            aria-valuemax={maxPx}
            onKeyDown={onKey}
            onPointerDown={onDown}
            onPointerMove={onMove}
            onPointerUp={() => (drag.current = null)}
            onDblClick={() => change(initialPx)}
          />
          <div class="split-side" style={{ width: `${width}px` }}>
            {side}
          </div>
        </>
      )}
    </div>
  );
}
