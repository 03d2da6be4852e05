/** The row of steps above the ruler: each step's name, and its length where there is room. */

import { STEP_ROW_PX, type StageTheme, type StepSpan } from './overlay';
import { cssOf, type Frame } from './renderer';
import type { TextFitter } from './text';

const PADDING_PX = 5;
const NOTE_GAP_PX = 6;
/** Narrower steps have no label. */
const LABEL_FROM_PX = 14;

/** The first step that ends after timePs; steps are in time order. */
function firstEndingAfter(steps: readonly StepSpan[], timePs: number): number {
  const index = steps.findIndex(({ startPs, durationPs }) => startPs + durationPs > timePs);
  return index < 0 ? steps.length : index;
}

/** The step at a time; null: between steps. */
export function stepAt(steps: readonly StepSpan[], timePs: number): StepSpan | null {
  const step = steps[firstEndingAfter(steps, timePs)];
  return step && step.startPs <= timePs ? step : null;
}

export function drawStepRow(
  context: CanvasRenderingContext2D,
  frame: Frame,
  steps: readonly StepSpan[],
  fitter: TextFitter,
  theme: StageTheme,
): void {
  const perPs = frame.widthPx / (frame.endPs - frame.startPs);
  context.fillStyle = cssOf(theme.background);
  context.fillRect(0, 0, frame.widthPx, STEP_ROW_PX);
  context.font = theme.font;
  context.textBaseline = 'middle';
  for (let i = firstEndingAfter(steps, frame.startPs); i < steps.length; i++) {
    const { startPs, durationPs, label, note } = steps[i] as StepSpan;
    if (startPs >= frame.endPs) break;
    const edge = (startPs - frame.startPs) * perPs;
    const left = Math.max(edge, 0);
    const right = Math.min((startPs + durationPs - frame.startPs) * perPs, frame.widthPx);
    context.fillStyle = cssOf(theme.surface);
    context.fillRect(left, 1, Math.max(1, right - left - 1), STEP_ROW_PX - 2);
    context.fillStyle = cssOf(theme.muted);
    if (edge >= 0) context.fillRect(Math.round(edge), 1, 1, STEP_ROW_PX - 2);
    if (right - left < LABEL_FROM_PX) continue;
    const room = right - left - 2 * PADDING_PX;
    const text = label.length === 1 ? label : fitter.fit(label, room);
    context.fillStyle = cssOf(theme.text);
    context.fillText(text, left + PADDING_PX, STEP_ROW_PX / 2 + 0.5);
    const noteFrom = fitter.width(text) + NOTE_GAP_PX;
    if (text !== label || noteFrom + fitter.width(note) > room) continue;
    context.fillStyle = cssOf(theme.muted);
    context.fillText(note, left + PADDING_PX + noteFrom, STEP_ROW_PX / 2 + 0.5);
  }
  context.fillStyle = cssOf(theme.line);
  context.fillRect(0, STEP_ROW_PX - 1, frame.widthPx, 1);
}
