/**
 * Labels on boxes: for each visible row, each box wide enough, the name truncated to fit, kept in view where
 * the box begins left of it.
 */

import { firstAfter, type Boxes, type RowPlaces } from './boxes';
import type { Band, Frame } from './renderer';
import type { TextFitter } from './text';

/** Narrower boxes have no label (CSS pixels). */
const LABEL_FROM_PX = 26;

const PADDING_PX = 4;

/** Rows lower than this are too low for text. */
const TEXT_HEIGHT_PX = 12;

export interface LabelLook {
  readonly fitter: TextFitter;
  readonly font: string;
  readonly inks: readonly [string, string];
  /** Boxes that do not match the search; null: there is no search. */
  readonly isDim: Uint8Array | null;
  readonly mutedInk: string;
  readonly isLightInk: Uint8Array;
  readonly isLightInkOnMerged: Uint8Array;
}

const countLabels = new Map<number, string>();

/** "214 events", "48k events": the label of a merged box. */
export function countLabel(n: number): string {
  const label = countLabels.get(n);
  if (label !== undefined) return label;
  const text = `${n < 10_000 ? String(n) : n < 1e6 ? `${(n / 1e3).toFixed(0)}k` : `${(n / 1e6).toFixed(1)}M`} events`;
  if (countLabels.size > 10_000) countLabels.clear();
  countLabels.set(n, text);
  return text;
}

export function drawLabels(
  context: CanvasRenderingContext2D,
  boxes: Boxes,
  places: RowPlaces,
  frame: Frame,
  band: Band,
  look: LabelLook,
): void {
  context.font = look.font;
  context.textBaseline = 'middle';
  const [top, bottom] = [band.scrollPx + band.topPx, band.scrollPx + band.bottomPx];
  for (let row = 0; row + 1 < boxes.rowFirst.length; row++) {
    const y = places.y[row] as number;
    const height = places.height[row] as number;
    if (height < TEXT_HEIGHT_PX || !(y < bottom && y + height > top)) continue;
    drawRow(context, boxes, row, y - band.scrollPx + height / 2 + 0.5, frame, look);
  }
}

function drawRow(
  context: CanvasRenderingContext2D,
  boxes: Boxes,
  row: number,
  middle: number,
  frame: Frame,
  look: LabelLook,
): void {
  const perPs = frame.widthPx / (frame.endPs - frame.startPs);
  const leastPs = LABEL_FROM_PX / perPs;
  const lo = boxes.rowFirst[row] as number;
  const hi = boxes.rowFirst[row + 1] as number;
  let ink = '';
  for (let i = Math.max(lo, firstAfter(boxes.startPs, lo, hi, frame.startPs) - 1); i < hi; i++) {
    const start = boxes.startPs[i] as number;
    if (start >= frame.endPs) break;
    const duration = boxes.durationPs[i] as number;
    if (duration < leastPs) continue;
    const left = Math.max((start - frame.startPs) * perPs, 0);
    const room = Math.min((start + duration - frame.startPs) * perPs, frame.widthPx) - left - 2 * PADDING_PX;
    if (room < LABEL_FROM_PX - 2 * PADDING_PX) continue;
    const nameId = boxes.nameId[i] as number;
    const nMerged = boxes.nMerged[i] as number;
    const text = look.fitter.fit(nMerged > 1 ? countLabel(nMerged) : (boxes.names[nameId] ?? ''), room);
    if (text === '') continue;
    const isLight = (nMerged > 1 ? look.isLightInkOnMerged : look.isLightInk)[boxes.style[i] as number];
    const fillStyle = look.isDim?.[i] ? look.mutedInk : look.inks[isLight ? 1 : 0];
    if (fillStyle !== ink) {
      ink = fillStyle;
      context.fillStyle = ink;
    }
    context.fillText(text, left + PADDING_PX, middle);
  }
}
