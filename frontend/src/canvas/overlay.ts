/**
 * Everything over and under the boxes: grid, step lines, the marked stretch, search hits, flow arrows,
 * outlines, the ruler.
 */

import type { Area } from './areas';
import { DIAMOND_PX, isDiamond, PIN_PX } from './boxes';
import { cssOf, mix, type Band, type Frame, type Rgb } from './renderer';
import { tickLabel, type Ruler } from './ticks';

export const RULER_PX = 26;

/** The row of steps above the ruler. */
export const STEP_ROW_PX = 20;

/** The row of marks below the ruler. */
export const MARKS_ROW_PX = 22;

export interface StageTheme {
  readonly families: readonly Rgb[];
  readonly background: Rgb;
  readonly surface: Rgb;
  readonly line: Rgb;
  readonly text: Rgb;
  readonly muted: Rgb;
  readonly accent: Rgb;
  readonly hit: Rgb;
  readonly flow: Rgb;
  readonly area: Rgb;
  readonly font: string;
}

export interface Outline {
  readonly startPs: number;
  /** 0: an instant, drawn as a diamond. */
  readonly durationPs: number;
  readonly y: number;
  readonly height: number;
}

/** A marked stretch of time; with rows from top to bottom (content px) where it is a box. */
export interface Stretch {
  readonly startPs: number;
  readonly endPs: number;
  readonly label: string;
  readonly rows: { readonly topPx: number; readonly bottomPx: number } | null;
}

export interface Arrow {
  readonly fromPs: number;
  readonly fromY: number;
  readonly toPs: number;
  readonly toY: number;
  /** Belongs to the selected event: drawn at full opacity, however many others there are. */
  readonly isOwn: boolean;
}

/** A stretch of search hits and the height of its mark. They are sorted by height and time. */
export interface Hit {
  readonly startPs: number;
  readonly endPs: number;
  readonly y: number;
  readonly height: number;
}

/** A step on the row above the ruler. */
export interface StepSpan {
  readonly startPs: number;
  readonly durationPs: number;
  readonly label: string;
  readonly note: string;
}

export interface Marks {
  readonly selected: Outline | null;
  /** Of events selected together. */
  readonly several: readonly Outline[];
  readonly hovered: Outline | null;
  /** Bottoms of tracks, in the content. */
  readonly separators: Float32Array;
  readonly stepsPs: Float64Array;
  /** On the row above the ruler, in time order; null: there is no such row. */
  readonly stepRow: readonly StepSpan[] | null;
  /** Whether room is left for the row of marks below the ruler. */
  readonly hasMarks: boolean;
  readonly stretch: Stretch | null;
  readonly arrows: readonly Arrow[];
  readonly hits: readonly Hit[];
  /** Starts and ends of stretches with hits on any track, marked on the ruler. */
  readonly hitStretches: Float64Array;
  readonly areas: readonly Area[];
  /** The edge between pinned rows and the scrolled ones; 0: nothing is pinned. */
  readonly pinnedBottomPx: number;
}

/** A height of the content as a height of the canvas. */
export function toScreen(y: number, frame: Frame): number {
  return y < 0 ? y + PIN_PX - frame.pinScrollPx : y - frame.scrollPx;
}

/** The ruler's bottom. */
export function rulerBottomPx(hasSteps: boolean): number {
  return RULER_PX + (hasSteps ? STEP_ROW_PX : 0);
}

/** Where the rows of tracks begin: below the ruler, and the row of marks if there are any. */
export function headerPx(hasSteps: boolean, hasMarks: boolean): number {
  return rulerBottomPx(hasSteps) + (hasMarks ? MARKS_ROW_PX : 0);
}

function xOf(frame: Frame): (timePs: number) => number {
  const perPs = frame.widthPx / (frame.endPs - frame.startPs);
  return (timePs) => (timePs - frame.startPs) * perPs;
}

export function drawGrid(
  context: CanvasRenderingContext2D,
  frame: Frame,
  marks: Marks,
  ruler: Ruler,
  theme: StageTheme,
): void {
  const hairline = 1 / frame.pixelRatio;
  const x = xOf(frame);
  const snap = (px: number): number => Math.round(px * frame.pixelRatio) / frame.pixelRatio;
  context.fillStyle = cssOf(mix(theme.line, theme.background, 0.75));
  for (let i = 0; i < ruler.nTicks; i++)
    context.fillRect(snap(x(ruler.firstPs + i * ruler.stepPs)), 0, hairline, frame.heightPx);
  context.fillStyle = cssOf(theme.line);
  for (const bottom of marks.separators) {
    const y = toScreen(bottom, frame);
    const [from, to] = bottom < 0 ? [0, marks.pinnedBottomPx] : [marks.pinnedBottomPx, frame.heightPx];
    if (y >= from && y <= to) context.fillRect(0, Math.round(y) - hairline, frame.widthPx, hairline);
  }
}

/** Closer than this, lines would hide what they separate. */
const STEP_GAP_PX = 14;

/** Above the boxes, thin and dashed: a step's boundary must be visible through full rows and hide nothing. */
export function drawSteps(
  context: CanvasRenderingContext2D,
  frame: Frame,
  stepsPs: Float64Array,
  topPx: number,
  theme: StageTheme,
): void {
  const x = xOf(frame);
  const nInView = stepsPs.reduce(
    (n, stepPs) => n + Number(stepPs >= frame.startPs && stepPs <= frame.endPs),
    0,
  );
  if (nInView * STEP_GAP_PX > frame.widthPx) return;
  context.save();
  context.strokeStyle = cssOf(theme.text);
  context.globalAlpha = 0.45;
  context.lineWidth = 1;
  context.setLineDash([2, 3]);
  context.beginPath();
  for (const stepPs of stepsPs) {
    const lineX = Math.round(x(stepPs)) + 0.5;
    if (lineX < 0 || lineX > frame.widthPx) continue;
    context.moveTo(lineX, topPx);
    context.lineTo(lineX, frame.heightPx);
  }
  context.stroke();
  context.restore();
}

export function drawStretch(
  context: CanvasRenderingContext2D,
  frame: Frame,
  stretch: Stretch,
  topPx: number,
  theme: StageTheme,
): void {
  const x = xOf(frame);
  const left = Math.max(x(stretch.startPs), -4);
  const right = Math.min(x(stretch.endPs), frame.widthPx + 4);
  if (right < 0 || left > frame.widthPx) return;
  const top = stretch.rows ? Math.max(toScreen(stretch.rows.topPx, frame), topPx) : topPx;
  const bottom = stretch.rows ? toScreen(stretch.rows.bottomPx, frame) : frame.heightPx;
  context.save();
  context.fillStyle = context.strokeStyle = cssOf(theme.accent);
  context.globalAlpha = 0.12;
  context.fillRect(left, top, right - left, Math.max(0, bottom - top));
  context.globalAlpha = 1;
  context.lineWidth = 1;
  context.strokeRect(
    Math.round(left) + 0.5,
    top - 0.5,
    Math.max(1, Math.round(right - left) - 1),
    Math.max(0, bottom - top),
  );
  context.restore();
}

/** The stretch's length, on the ruler: over its middle, or as near to it as the window permits. */
export function drawStretchLabel(
  context: CanvasRenderingContext2D,
  frame: Frame,
  stretch: Stretch,
  bottomPx: number,
  theme: StageTheme,
): void {
  const x = xOf(frame);
  const left = Math.max(x(stretch.startPs), 0);
  const right = Math.min(x(stretch.endPs), frame.widthPx);
  if (right < 0 || left > frame.widthPx) return;
  const width = context.measureText(stretch.label).width + 12;
  const middle = Math.min(Math.max((left + right) / 2, width / 2 + 2), frame.widthPx - width / 2 - 2);
  context.fillStyle = cssOf(theme.accent);
  context.fillRect(left, bottomPx - 3, Math.max(1, right - left), 3);
  context.beginPath();
  context.roundRect(middle - width / 2, bottomPx - RULER_PX + 3, width, RULER_PX - 8, 3);
  context.fill();
  context.fillStyle = cssOf(theme.background);
  context.fillText(stretch.label, middle - width / 2 + 6, bottomPx - RULER_PX / 2);
}

export function drawHits(
  context: CanvasRenderingContext2D,
  frame: Frame,
  hits: readonly Hit[],
  band: Band,
  theme: StageTheme,
): void {
  const x = xOf(frame);
  context.fillStyle = cssOf(theme.hit);
  for (const { startPs, endPs, y, height } of hits) {
    const left = Math.max(Math.floor(x(startPs)), -2);
    const right = Math.min(Math.ceil(x(endPs)), frame.widthPx + 2);
    const top = y - band.scrollPx;
    if (right < 0 || left > frame.widthPx || top > band.bottomPx || top + height < band.topPx) continue;
    context.fillRect(left, top - 1, Math.max(2, right - left), height + 2);
  }
}

const HIT_BAR_PX = 4;

/** Where the window has search hits on any track, along the lower edge of the ruler. */
export function drawHitStretches(
  context: CanvasRenderingContext2D,
  frame: Frame,
  stretches: Float64Array,
  bottomPx: number,
  theme: StageTheme,
): void {
  const x = xOf(frame);
  context.fillStyle = cssOf(theme.hit);
  for (let i = 0; i + 1 < stretches.length; i += 2) {
    const left = Math.max(x(stretches[i] as number), -2);
    const right = Math.min(x(stretches[i + 1] as number), frame.widthPx + 2);
    if (right >= 0 && left <= frame.widthPx)
      context.fillRect(left, bottomPx - HIT_BAR_PX, Math.max(1.5, right - left), HIT_BAR_PX);
  }
}

/** Up to this many arrows are drawn at full opacity; more are fainter, and without heads. */
const CLEAR_ARROWS = 40;

/**
 * From an event's end to the next event's beginning: a bend that leaves to the right and arrives from the
 * left.
 */
export function drawArrows(
  context: CanvasRenderingContext2D,
  frame: Frame,
  arrows: readonly Arrow[],
  theme: StageTheme,
): void {
  const x = xOf(frame);
  const isSeen = ({ fromPs, fromY, toPs, toY }: Arrow): boolean => {
    const [x1, x2] = [x(fromPs), x(toPs)];
    const [y1, y2] = [toScreen(fromY, frame), toScreen(toY, frame)];
    return (
      Math.max(x1, x2) >= 0 &&
      Math.min(x1, x2) <= frame.widthPx &&
      Math.max(y1, y2) >= 0 &&
      Math.min(y1, y2) <= frame.heightPx
    );
  };
  const visible = arrows.filter(isSeen);
  if (visible.length === 0) return;
  context.save();
  context.strokeStyle = context.fillStyle = cssOf(theme.flow);
  for (const isOwn of [false, true]) {
    const drawn = visible.filter((arrow) => arrow.isOwn === isOwn);
    const strength = isOwn ? 1 : Math.sqrt(CLEAR_ARROWS / Math.max(drawn.length, CLEAR_ARROWS));
    context.globalAlpha = strength;
    context.lineWidth = isOwn ? 1.6 : 0.7 + 0.6 * strength;
    strokeArrows(context, frame, drawn);
    if (strength > 0.5) fillHeads(context, frame, drawn);
  }
  context.restore();
}

function strokeArrows(context: CanvasRenderingContext2D, frame: Frame, arrows: readonly Arrow[]): void {
  const x = xOf(frame);
  context.beginPath();
  for (const { fromPs, fromY, toPs, toY } of arrows) {
    const [x1, x2] = [x(fromPs), x(toPs)];
    const [y1, y2] = [toScreen(fromY, frame), toScreen(toY, frame)];
    const bend = Math.min(60, 14 + Math.abs(x2 - x1) / 2);
    // Far ends are clipped: a curve of a million pixels costs as much as a thousand short ones.
    const clamp = (px: number): number => Math.max(-2000, Math.min(frame.widthPx + 2000, px));
    context.moveTo(clamp(x1), y1);
    context.bezierCurveTo(clamp(x1 + bend), y1, clamp(x2 - bend), y2, clamp(x2), y2);
  }
  context.stroke();
}

function fillHeads(context: CanvasRenderingContext2D, frame: Frame, arrows: readonly Arrow[]): void {
  const x = xOf(frame);
  context.beginPath();
  for (const { toPs, toY } of arrows) {
    const [headX, headY] = [x(toPs), toScreen(toY, frame)];
    context.moveTo(headX, headY);
    context.lineTo(headX - 7, headY - 4);
    context.lineTo(headX - 7, headY + 4);
    context.closePath();
  }
  context.fill();
}

function strokeDiamond(
  context: CanvasRenderingContext2D,
  frame: Frame,
  outline: Outline,
  widthPx: number,
  theme: StageTheme,
): void {
  const middle = xOf(frame)(outline.startPs);
  if (middle < -DIAMOND_PX || middle > frame.widthPx + DIAMOND_PX) return;
  const center = toScreen(outline.y, frame) + outline.height / 2;
  const reach = DIAMOND_PX + widthPx;
  context.beginPath();
  context.moveTo(middle, center - reach);
  context.lineTo(middle + reach, center);
  context.lineTo(middle, center + reach);
  context.lineTo(middle - reach, center);
  context.closePath();
  for (const [color, width] of [
    [theme.background, widthPx + 2],
    [theme.text, widthPx],
  ] as const) {
    context.strokeStyle = cssOf(color);
    context.lineWidth = width;
    context.stroke();
  }
}

export function drawOutline(
  context: CanvasRenderingContext2D,
  frame: Frame,
  outline: Outline,
  widthPx: number,
  theme: StageTheme,
): void {
  if (outline.durationPs === 0 && isDiamond(outline.height)) {
    strokeDiamond(context, frame, outline, widthPx, theme);
    return;
  }
  const x = xOf(frame);
  const left = Math.max(x(outline.startPs), -8);
  const right = Math.min(Math.max(x(outline.startPs + outline.durationPs), left + 2), frame.widthPx + 8);
  if (right < -8 || left > frame.widthPx + 8) return;
  const y = toScreen(outline.y, frame);
  const half = widthPx / 2;
  for (const [color, width] of [
    [theme.background, widthPx + 2],
    [theme.text, widthPx],
  ] as const) {
    context.strokeStyle = cssOf(color);
    context.lineWidth = width;
    context.strokeRect(left - half, y - half, right - left + widthPx - 1, outline.height + widthPx);
  }
}

/** Its bottom is at `bottomPx`; nothing else is visible above `topPx`, but the rows of steps and marks. */
export function drawRuler(
  context: CanvasRenderingContext2D,
  frame: Frame,
  ruler: Ruler,
  { bottomPx, topPx }: { bottomPx: number; topPx: number },
  theme: StageTheme,
): void {
  const x = xOf(frame);
  context.fillStyle = cssOf(theme.background);
  context.fillRect(0, 0, frame.widthPx, topPx);
  context.fillStyle = cssOf(theme.line);
  context.fillRect(0, bottomPx - 1, frame.widthPx, 1);
  context.font = theme.font;
  context.textBaseline = 'middle';
  for (let i = 0; i < ruler.nTicks; i++) {
    const tickX = Math.round(x(ruler.firstPs + i * ruler.stepPs));
    context.fillStyle = cssOf(theme.line);
    context.fillRect(tickX, bottomPx - 9, 1, 9);
    context.fillStyle = cssOf(theme.muted);
    const label = tickLabel(ruler, i);
    if (tickX + 4 + label.length * 7 < frame.widthPx)
      context.fillText(label, tickX + 4, bottomPx - RULER_PX / 2);
  }
}
