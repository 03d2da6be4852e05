/** The strip above the timeline: the whole trace, the window in it; click or drag to go elsewhere. */

import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { format } from '../../base/units';
import { densityOf, drawMinimap } from '../../canvas/minimap';
import { spanPs } from '../../canvas/viewport';
import { readTheme } from './theme';
import type { Timeline } from './timeline';

export const MINIMAP_PX = 30;

const COLUMN_PX = 2;

function goTo(timeline: Timeline, event: PointerEvent): void {
  const bounds = (event.currentTarget as Element).getBoundingClientRect();
  const at = ((event.clientX - bounds.left) / Math.max(bounds.width, 1)) * timeline.durationPs;
  const half = spanPs(timeline.viewport) / 2;
  timeline.setView({ startPs: at - half, endPs: at + half });
}

/** Draws whenever the view, the theme or the size changes; the density only with trace and width. */
function usePainting(timeline: Timeline, canvas: { current: HTMLCanvasElement | null }): void {
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    let density: Float32Array = new Float32Array(0);
    let theme = readTheme();
    const paint = (): void => {
      const size = { widthPx: Math.max(element.clientWidth, 1), heightPx: MINIMAP_PX, pixelRatio: window.devicePixelRatio || 1 };
      const nColumns = Math.ceil(size.widthPx / COLUMN_PX);
      const { overview } = timeline;
      if (overview && density.length !== nColumns) {
        const rows = [...overview.rowDepth.keys()].filter((row) => overview.rowDepth[row] === 0);
        density = densityOf(overview.boxes, rows, timeline.durationPs, nColumns);
      }
      drawMinimap(element, size, density, timeline.viewport, timeline.durationPs, { fill: theme.families[0] ?? theme.text, background: theme.background, accent: theme.accent });
    };
    const resized = new ResizeObserver(paint);
    resized.observe(element);
    const rethemed = new MutationObserver(() => {
      theme = readTheme();
      paint();
    });
    rethemed.observe(document.documentElement, { attributes: true, attributeFilter: ['class'] });
    const stop = timeline.onFrame(paint);
    return () => {
      resized.disconnect();
      rethemed.disconnect();
      stop();
    };
  }, [timeline]);
}

export function Minimap({ timeline }: { timeline: Timeline }): VNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  usePainting(timeline, canvas);
  return (
    <div class="tv-minimap" style={{ height: `${String(MINIMAP_PX)}px` }}>
      <span>whole trace · {format(timeline.durationPs, 'ps')}</span>
      <canvas
        ref={canvas}
        role="img"
        aria-label="The whole trace; click to move the window there"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          goTo(timeline, event);
        }}
        onPointerMove={(event) => { if (event.buttons & 1) goTo(timeline, event); }}
      />
    </div>
  );
}
