/**
 * The strip above the timeline: the whole trace and the window in it; drag the window, its edges, or click
 * elsewhere.
 */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { exactText, format, plural } from '../../base/units';
import {
  densityOf,
  drawMinimap,
  grabAt,
  grabbed,
  layersOf,
  type Grab,
  type Layer,
} from '../../canvas/minimap';
import { spanPs } from '../../canvas/viewport';
import { decodeDensity, type Density } from './data/details_model';
import { readTheme } from './drawing/theme';
import type { Timeline } from './state/timeline';

const MINIMAP_PX = 36;

const COLUMN_PX = 2;

/** From the loaded boxes; the server's own numbers follow. */
function ownDensity(timeline: Timeline, nColumns: number): Float32Array {
  const { overview } = timeline;
  if (!overview) return new Float32Array(0);
  const rows = [...overview.rowDepth.keys()].filter((row) => overview.rowDepth[row] === 0);
  return densityOf(overview.boxes, rows, timeline.durationPs, nColumns);
}

function layers(density: Density | null, fromBoxes: Float32Array): Layer[] {
  if (!density || density.parts.length === 0) return [{ isDevice: false, share: fromBoxes }];
  return layersOf(
    density.parts.map(({ section, busy }) => ({ isDevice: !/^Host/i.test(section), share: busy })),
  );
}

/** Draws when the view, the theme or the size changes; the density only when trace or width change. */
function usePainting(timeline: Timeline, canvas: { current: HTMLCanvasElement | null }, scope: string): void {
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const abort = new AbortController();
    let shown: Layer[] = [];
    let nColumns = 0;
    let theme = readTheme();
    const paint = (): void => {
      const size = {
        widthPx: Math.max(element.clientWidth, 1),
        heightPx: MINIMAP_PX,
        pixelRatio: window.devicePixelRatio || 1,
      };
      const nPixels = Math.ceil(size.widthPx / COLUMN_PX);
      if (nPixels !== nColumns && timeline.overview) {
        nColumns = nPixels;
        shown = layers(null, ownDensity(timeline, nColumns));
        timeline.ask('minimap', { width_px: String(nColumns) }, abort.signal).then(
          (payload) => {
            shown = layers(decodeDensity(payload, nPixels), ownDensity(timeline, nPixels));
            paint();
          },
          () => undefined, // The boxes' own density stays.
        );
      }
      const look = {
        device: theme.families[3] ?? theme.text,
        host: theme.families[1] ?? theme.text,
        background: theme.background,
        accent: theme.accent,
      };
      const { overview } = timeline;
      const found = overview && timeline.search.hitsOf(overview);
      const stretches = found?.window === overview ? found?.stretches : undefined;
      drawMinimap(element, size, shown, timeline.camera.view, timeline.durationPs, look, stretches);
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
      abort.abort();
      resized.disconnect();
      rethemed.disconnect();
      stop();
    };
  }, [timeline, scope]);
}

const CURSORS: Readonly<Record<Grab['part'], string>> = {
  start: 'ew-resize',
  end: 'ew-resize',
  window: 'grab',
  outside: 'pointer',
};

export function Minimap({ timeline, scope }: { timeline: Timeline; scope: string }): VNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const grab = useSignal<Grab | null>(null);
  usePainting(timeline, canvas, scope);
  const positionOf = (event: PointerEvent): { x: number; widthPx: number } => {
    const bounds = (event.currentTarget as Element).getBoundingClientRect();
    return { x: event.clientX - bounds.left, widthPx: Math.max(bounds.width, 1) };
  };
  const { camera, durationPs } = timeline;
  const view = camera.settled.value;
  return (
    <div class="tv-minimap" style={{ height: `${String(MINIMAP_PX)}px` }}>
      <div class="tv-whole">
        <span title={exactText(spanPs(view), 'ps')}>
          <b>{format(spanPs(view), 'ps')}</b> of {format(durationPs, 'ps')}
        </span>
        <span class="muted">{plural(timeline.facts.value?.nEvents ?? 0, 'event')}</span>
      </div>
      <canvas
        ref={canvas}
        role="img"
        aria-label="The whole trace; drag the window or its edges, or click to go there"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const { x, widthPx } = positionOf(event);
          grab.value = grabAt(camera.view, durationPs, x, widthPx);
          if (grab.value.part === 'outside') camera.leap(grabbed(grab.value, durationPs, x, widthPx));
        }}
        onPointerMove={(event) => {
          const { x, widthPx } = positionOf(event);
          if (grab.value && event.buttons & 1) camera.set(grabbed(grab.value, durationPs, x, widthPx));
          else event.currentTarget.style.cursor = CURSORS[grabAt(camera.view, durationPs, x, widthPx).part];
        }}
        onPointerUp={() => {
          grab.value = null;
        }}
      />
    </div>
  );
}
