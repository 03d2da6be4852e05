/** Dragging over a chart of time, the part that is dragged, and buttons that zoom. */
import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { dragged, LEFT_PX, moved, RIGHT_PX, windowParams, type Window } from './time_window';
import type { ToolProps } from './tool';
import './time_window.css';

export interface Drag {
  from: number;
  to: number;
}

/** The pointer's position as a share of the width of the plot, which leaves room for its axes. */
function shareAt(event: PointerEvent, box: HTMLElement): number {
  const { left, width } = box.getBoundingClientRect();
  return (event.clientX - left - LEFT_PX) / Math.max(1, width - LEFT_PX - RIGHT_PX);
}

function useDrag(onZoom: (drag: Drag) => void): {
  drag: Drag | null;
  handlers: Record<string, (event: PointerEvent) => void>;
} {
  const [drag, setDrag] = useState<Drag | null>(null);
  const started = useRef<Drag | null>(null);
  const set = (next: Drag | null): void => {
    started.current = next;
    setDrag(next);
  };
  const handlers = {
    onPointerDown: (event: PointerEvent) => {
      const share = shareAt(event, event.currentTarget as HTMLElement);
      if (event.button !== 0 || share < 0 || share > 1 || (event.target as Element).closest('button')) return;
      set({ from: share, to: share });
    },
    onPointerMove: (event: PointerEvent) => {
      if (!started.current) return;
      const share = shareAt(event, event.currentTarget as HTMLElement);
      if (Math.abs(share - started.current.from) > 0.005)
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      set({ from: started.current.from, to: share });
    },
    onPointerUp: () => {
      const done = started.current;
      set(null);
      if (done) onZoom(done);
    },
    onPointerCancel: () => set(null),
  };
  return { drag, handlers };
}

/** Dragging shows a part of the window of a page, a click chooses a moment; `show` shows another window. */
export function useWindowDrag(
  window: Window,
  wholePs: number,
  setParams: ToolProps['setParams'],
): ReturnType<typeof useDrag> & { show: (next: Window | null) => void } {
  const show = (next: Window | null): void => setParams(windowParams(next, wholePs), 'push');
  const { drag, handlers } = useDrag(({ from, to }) => {
    const next = dragged(window, from, to);
    const atPs = Math.round(window.startPs + from * (window.endPs - window.startPs));
    if (next) show(next);
    else if (Math.abs(to - from) < 0.005) setParams({ at_ps: String(atPs) }, 'push');
  });
  return { drag, handlers, show };
}

/** The names that a legend hides, and a function that hides or shows one. */
export function useHidden(atFirst: () => ReadonlySet<string>): [ReadonlySet<string>, (name: string) => void] {
  const [hidden, setHidden] = useState(atFirst);
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  return [hidden, toggle];
}

export function Selection({ drag }: { drag: Drag }): VNode {
  const [low, high] = [Math.max(0, Math.min(drag.from, drag.to)), Math.min(1, Math.max(drag.from, drag.to))];
  const room = `(100% - ${LEFT_PX + RIGHT_PX}px)`;
  return (
    <div
      class="tw-selection"
      style={{ left: `calc(${LEFT_PX}px + ${low} * ${room})`, width: `calc(${high - low} * ${room})` }}
    />
  );
}

export function ZoomButtons({
  window,
  isWhole,
  tracePs,
  onWindow,
}: {
  window: Window;
  isWhole: boolean;
  tracePs: number;
  onWindow: (window: Window | null) => void;
}): VNode {
  const button = (label: string, text: string, next: () => Window | null, disabled = false): VNode => (
    <button
      type="button"
      class="button small"
      aria-label={label}
      data-tip={label}
      disabled={disabled}
      onClick={() => onWindow(next())}
    >
      {text}
    </button>
  );
  return (
    <span class="tw-zoom" role="group" aria-label="Zoom">
      {button('Zoom in', '+', () => moved(window, 0.5, 0, tracePs))}
      {button('Zoom out', '−', () => moved(window, 2, 0, tracePs), isWhole)}
      {button('Earlier', '‹', () => moved(window, 1, -0.5, tracePs), isWhole || window.startPs <= 0)}
      {button('Later', '›', () => moved(window, 1, 0.5, tracePs), window.endPs >= tracePs)}
      {button('Show all', 'All', () => null, isWhole)}
    </span>
  );
}

/** The button that leaves the moment a click chose; undefined where none is chosen. */
export function backToPeak(
  params: ToolProps['params'],
  setParams: ToolProps['setParams'],
): VNode | undefined {
  if (params['at_ps'] === undefined) return undefined;
  return (
    <button type="button" class="button small" onClick={() => setParams({ at_ps: undefined }, 'push')}>
      Back to the peak
    </button>
  );
}
