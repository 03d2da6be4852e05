/** The width of the column of names: dragged, set with arrow keys, or fitted to the longest name; remembered. */

import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { tokenColor } from '../../../base/color';
import { recall, remember } from '../../../base/storage';
import { TextFitter } from '../../../canvas/text';
import { isCounter } from '../drawing/layout';
import type { Track } from '../data/model';
import type { Timeline } from '../state/timeline';

const KEY = 'tpuprof.trace_viewer.names';
const DEFAULT_PX = 210;
const MIN_PX = 120;
const MAX_PX = 900;
const KEY_STEP_PX = 16;
/** Of the window, the share that names take at most. */
const MAX_SHARE = 0.6;
/** Beside a name: the fold mark, paddings and the border. */
const AROUND_PX = 44;

function limited(px: number): number {
  return Math.round(Math.max(MIN_PX, Math.min(px, MAX_PX, window.innerWidth * MAX_SHARE)));
}

function remembered(): number {
  const px = Number(recall(KEY));
  return px > 0 ? limited(px) : DEFAULT_PX;
}

export const namesPx = signal(remembered());

function change(px: number): void {
  namesPx.value = limited(px);
  remember(KEY, namesPx.value);
}

let fitter: TextFitter | null = null;

/** The width of a text in the column's font. */
export function textWidth(text: string): number {
  if (!fitter) {
    const context = document.createElement('canvas').getContext('2d');
    const font = `${tokenColor('--text-s') || '12px'} ${tokenColor('--font') || 'sans-serif'}`;
    fitter = new TextFitter((part) => {
      if (!context) return 7;
      context.font = font;
      return context.measureText(part).width;
    });
  }
  return fitter.width(text);
}

/** The room for the text of a name. */
export function nameRoom(widthPx: number): number {
  return widthPx - AROUND_PX;
}

/** Wide enough for the whole of these names. */
export function widthOfNames(tracks: readonly Track[]): number {
  const widest = tracks.reduce(
    (most, track) => Math.max(most, textWidth(track.name) * (isCounter(track) ? 1.4 : 1)),
    0,
  );
  return Math.ceil(widest) + AROUND_PX;
}

/** The edge of the column: drag it, or arrow keys; a double click or Enter fits it to the longest name. */
export function NamesHandle({ timeline }: { timeline: Timeline }): VNode {
  const fit = (): void => {
    const shown = [...timeline.layout.value.placeOfTrack.values()].map(({ track }) => track);
    const fitted = limited(widthOfNames(shown));
    change(fitted === namesPx.value ? DEFAULT_PX : fitted);
  };
  return (
    <div
      class="tv-names-handle"
      role="separator"
      tabIndex={0}
      aria-label="Width of the names"
      aria-orientation="vertical"
      aria-valuenow={namesPx.value}
      aria-valuemin={MIN_PX}
      aria-valuemax={MAX_PX}
      data-tip="Drag for wider names; a double click shows the longest one"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (event.buttons & 1)
          change(event.clientX - (event.currentTarget.parentElement?.getBoundingClientRect().left ?? 0));
      }}
      onDblClick={fit}
      onKeyDown={(event) => {
        const steps: Record<string, number> = { ArrowLeft: -KEY_STEP_PX, ArrowRight: KEY_STEP_PX };
        const step = steps[event.key];
        if (step !== undefined) change(namesPx.value + step);
        else if (event.key === 'Home') change(MIN_PX);
        else if (event.key === 'End') change(MAX_PX);
        else if (event.key === 'Enter') fit();
        else return;
        event.preventDefault();
      }}
    />
  );
}
