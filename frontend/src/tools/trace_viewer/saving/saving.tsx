/**
 * Exports the view: a picture, a Chrome trace of the window, the run for Perfetto. No data is sent anywhere.
 */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import type { ToolParams } from '../../../api/client';
import { saveBlob } from '../../../base/clipboard';
import { format } from '../../../base/units';
import { cssOf, type Frame, type Rgb } from '../../../canvas/renderer';
import { toScreen } from '../../../canvas/overlay';
import { Menu } from '../../../widgets/menu';
import { PAD_PX, PITCH_PX as LINE_PX, SECTION_PX } from '../drawing/layout';
import { widthOfNames } from '../tracks/names_width';
import { labelOf, shownTrackIds, totalsParams, type Marked } from '../drawing/marked';
import { fileName, useFiles } from './files';
import { PerfettoDialog } from './perfetto_dialog';
import { readTheme } from '../drawing/theme';
import type { Timeline } from '../state/timeline';

const TITLE_PX = 30;
/** Names of tracks are complete up to this; a picture's width is limited by the browser. */
const MAX_NAMES_PX = 2000;

function clipText(context: CanvasRenderingContext2D, text: string, x: number, y: number, room: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y - 12, room, 24);
  context.clip();
  context.fillText(text, x, y);
  context.restore();
}

function drawNames(
  context: CanvasRenderingContext2D,
  timeline: Timeline,
  frame: Frame,
  namesPx: number,
  widthPx: number,
): void {
  const layout = timeline.layout.value;
  const theme = readTheme();
  const write = (text: string, y: number, x: number, color: Rgb, isBold: boolean): void => {
    context.fillStyle = cssOf(color);
    context.font = `${isBold ? '600 ' : ''}${theme.font}`;
    clipText(context, text, x, y, (isBold ? widthPx : namesPx) - x - 4);
  };
  if (timeline.hasSteps) write('Step', TITLE_PX + 10, 20, theme.muted, false);
  const edge = layout.pinnedBottomPx;
  for (const place of layout.placeOfTrack.values()) {
    const top = toScreen(place.y, frame);
    // A name stays at the edge while its track scrolls by, as on the page.
    const least = place.isPinned ? layout.topPx : edge + SECTION_PX;
    const y = Math.min(Math.max(top, least), top + place.height - LINE_PX);
    if (y >= least - PAD_PX && y + LINE_PX <= (place.isPinned ? edge : frame.heightPx) + PAD_PX)
      write(place.track.name, TITLE_PX + y + 12, 20, theme.muted, false);
  }
  for (const { section, y, height } of layout.sections) {
    const top = toScreen(y, frame);
    if (top + height <= edge || top > frame.heightPx) continue;
    const headY = TITLE_PX + Math.max(top, edge);
    context.fillStyle = cssOf(theme.surface);
    context.fillRect(0, headY, widthPx, SECTION_PX - 1);
    write(section.title, headY + 13, 8, theme.text, true);
  }
}

/** The timeline as on screen, with its names and a caption. */
async function savePicture(timeline: Timeline, run: string): Promise<void> {
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d');
  if (!context) return;
  const theme = readTheme();
  const ratio = window.devicePixelRatio || 1;
  const size = timeline.size;
  const names = [...timeline.layout.value.placeOfTrack.values()].map(({ track }) => track);
  const namesPx = Math.min(Math.max(120, widthOfNames(names)), MAX_NAMES_PX);
  canvas.width = Math.round((namesPx + size.widthPx) * ratio);
  canvas.height = Math.round((TITLE_PX + size.heightPx) * ratio);
  context.scale(ratio, ratio);
  context.fillStyle = cssOf(theme.background);
  context.fillRect(0, 0, namesPx + size.widthPx, TITLE_PX + size.heightPx);
  const frame = timeline.copyTo(context, namesPx, TITLE_PX);
  context.textBaseline = 'middle';
  drawNames(context, timeline, frame, namesPx, namesPx + size.widthPx);
  context.fillStyle = cssOf(theme.text);
  context.font = theme.font;
  const { startPs, endPs } = timeline.camera.view;
  context.fillText(
    `${run} · ${format(endPs - startPs, 'ps')} from ${format(startPs, 'ps')}`,
    8,
    TITLE_PX / 2,
  );
  const blob = await new Promise<Blob | null>((resolve) => {
    canvas.toBlob(resolve, 'image/png');
  });
  if (blob) saveBlob(blob, `${fileName(run, 'trace')}.png`);
}

export interface SavingProps {
  timeline: Timeline;
  run: string;
  hosts: readonly string[];
}

function windowParams(timeline: Timeline): ToolParams {
  const { startPs, endPs } = timeline.camera.view;
  const { nHidden, placeOfTrack } = timeline.layout.value;
  const tracks: ToolParams =
    nHidden > 0
      ? {
          tracks: [...placeOfTrack.values()]
            .filter(({ track }) => !track.isDerived)
            .map(({ track }) => track.id)
            .join(','),
        }
      : {};
  return { start_ps: String(Math.floor(startPs)), end_ps: String(Math.ceil(endPs)), ...tracks };
}

/** The marked interval or box: its tracks and rows, else the tracks shown. */
function selectionParams(timeline: Timeline, marked: Marked): ToolParams {
  return totalsParams(marked, shownTrackIds(timeline.layout.value));
}

export function Saving({ timeline, run, hosts }: SavingProps): VNode {
  const isPerfetto = useSignal(false);
  const { state, saveTrace, saveEvents, openTrace } = useFiles(run, hosts);
  const paramsOf = (what: 'run' | 'window'): ToolParams => (what === 'run' ? {} : windowParams(timeline));
  const marked = timeline.marked.value;
  const ofSelection = marked
    ? [
        {
          label: 'The marked events as Chrome trace JSON',
          note: labelOf(marked),
          act: () => void saveTrace(selectionParams(timeline, marked), 'selection'),
        },
        {
          label: 'The marked events as CSV',
          note: labelOf(marked),
          act: () => void saveEvents(selectionParams(timeline, marked), 'selection'),
        },
      ]
    : [];
  const items = [
    { label: 'This view as PNG', act: () => void savePicture(timeline, run) },
    {
      label: 'This window as Chrome trace JSON',
      note: 'tracks shown; opens in Perfetto',
      act: () => void saveTrace(windowParams(timeline), 'window'),
    },
    {
      label: 'This window’s events as CSV',
      note: 'tracks shown',
      act: () => void saveEvents(windowParams(timeline), 'window'),
    },
    ...ofSelection,
    {
      label: 'Open in Perfetto…',
      note: 'or save a file for it',
      act: () => {
        isPerfetto.value = true;
      },
    },
  ];
  return (
    <>
      {state.value && (
        <span
          class={state.value.isError ? 'tv-refusal' : 'muted'}
          role={state.value.isError ? 'alert' : 'status'}
        >
          {state.value.text}
        </span>
      )}
      <Menu label="Save" title="Save the view" items={items} />
      {isPerfetto.value && (
        <PerfettoDialog
          onOpen={(what) => {
            void openTrace(paramsOf(what), what);
          }}
          onSave={(what) => {
            void saveTrace(paramsOf(what), what);
          }}
          onClose={() => {
            isPerfetto.value = false;
          }}
        />
      )}
    </>
  );
}
