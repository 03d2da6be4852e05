/** Draws memory over program order: the curve of bytes in use, and the map of offsets. */
import { format, scaleFor, threeDigits } from '../../base/units';
import type { Pen } from './canvas';
import type { Buffer, Colors, Extent, Point, Steps } from './model';

export const LEFT_PX = 64;
export const RIGHT_PX = 14;
export const TOP_PX = 18;
export const BOTTOM_PX = 20;
const TICK_PX = 110;
const BLOCK_ALPHA = 0.85;
/** Opacity of the blocks while one is highlighted. */
export const OTHERS_ALPHA = 0.53;

/** The data that the two charts draw. */
export interface OrderPicture {
  points: readonly Point[];
  blocks: readonly Buffer[];
  steps: Steps;
  peakStep: number | null;
  peakBytes: number;
  permanentBytes: number;
  /** The buffer whose lifetime is highlighted. */
  marked: Buffer | null;
  colors: Colors;
}

function xOf(steps: Steps, width: number): (step: number) => number {
  const scale = (width - LEFT_PX - RIGHT_PX) / Math.max(1, steps.last - steps.first + 1);
  return (step) => LEFT_PX + (step - steps.first) * scale;
}

/** Round values of an axis. */
function ticks(low: number, high: number, most: number): number[] {
  const raw = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = Math.max(1e-9, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? power);
  const values = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step)
    values.push(value);
  return values;
}

function drawAxes(pen: Pen, steps: Steps, extent: Extent, title: string): (bytes: number) => number {
  const { context, width, height, color } = pen;
  const scale = scaleFor(extent.high, 'bytes');
  const yOf = offsetY(pen, extent);
  context.lineWidth = 1;
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  for (const value of ticks(extent.low / scale.factor, extent.high / scale.factor, 5)) {
    const y = Math.round(yOf(value * scale.factor)) + 0.5;
    context.strokeStyle = color('--line');
    context.beginPath();
    context.moveTo(LEFT_PX, y);
    context.lineTo(width - RIGHT_PX, y);
    context.stroke();
    context.fillStyle = color('--muted');
    context.fillText(threeDigits(value), LEFT_PX - 6, y);
  }
  context.textAlign = 'left';
  context.fillText(`${title}, ${scale.label}`, 2, 7);
  context.textAlign = 'center';
  const x = xOf(steps, width);
  for (const value of ticks(steps.first, steps.last + 1, Math.max(2, (width - LEFT_PX) / TICK_PX))) {
    if (!Number.isInteger(value)) continue;
    context.fillText(value.toLocaleString('en-US'), Math.min(width - RIGHT_PX, x(value)), height - 8);
  }
  return yOf;
}

function drawSpan({ context, width, height, color }: Pen, steps: Steps, buffer: Buffer): void {
  const x = xOf(steps, width);
  const [left, right] = [Math.max(LEFT_PX, x(buffer.first)), Math.min(width - RIGHT_PX, x(buffer.last + 1))];
  if (right < left) return;
  context.fillStyle = color('--accent');
  context.globalAlpha = 0.14;
  context.fillRect(left, TOP_PX, Math.max(2, right - left), height - TOP_PX - BOTTOM_PX);
  context.globalAlpha = 1;
}

/** A step line, as far as it is known; each point holds until the next. */
function trace(
  { context }: Pen,
  points: readonly Point[],
  value: (point: Point) => number,
  scales: { x: (step: number) => number; y: (bytes: number) => number; last: number },
): void {
  context.beginPath();
  points.forEach((point, i) => {
    const [left, y] = [scales.x(point.step), scales.y(value(point))];
    if (i === 0) context.moveTo(left, y);
    else context.lineTo(left, y);
    context.lineTo(scales.x(points[i + 1]?.step ?? scales.last + 1), y);
  });
}

function heldExtent({ peakBytes }: OrderPicture): Extent {
  return { low: 0, high: Math.max(1, peakBytes * 1.06) };
}

export function drawHeld(pen: Pen, props: OrderPicture): void {
  const { context, width, color } = pen;
  const { points, steps, peakBytes, peakStep, permanentBytes } = props;
  const y = drawAxes(pen, steps, heldExtent(props), 'In use');
  const x = xOf(steps, width);
  context.fillStyle = color('--c-input');
  context.globalAlpha = 0.16;
  context.fillRect(
    LEFT_PX,
    y(permanentBytes),
    width - LEFT_PX - RIGHT_PX,
    Math.max(0, y(0) - y(permanentBytes)),
  );
  context.globalAlpha = 1;
  const scales = { x, y, last: steps.last };
  trace(pen, points, (point) => point.heldBytes, scales);
  context.lineTo(x(steps.last + 1), y(0));
  context.lineTo(x(points[0]?.step ?? steps.first), y(0));
  context.fillStyle = color('--q-0');
  context.globalAlpha = 0.22;
  context.fill();
  context.globalAlpha = 1;
  context.lineWidth = 1.5;
  context.strokeStyle = color('--q-0');
  trace(pen, points, (point) => point.heldBytes, scales);
  context.stroke();
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.strokeStyle = color('--muted');
  trace(pen, points, (point) => point.unpaddedBytes, scales);
  context.stroke();
  context.setLineDash([]);
  if (peakStep !== null && peakStep >= steps.first && peakStep <= steps.last)
    drawPeak(pen, (x(peakStep) + x(peakStep + 1)) / 2, y(peakBytes), peakBytes);
}

/** The layer above the curve: the lifetime of the highlighted buffer, and the step under the pointer. */
export function drawPointed(pen: Pen, { steps, marked }: OrderPicture, hovered: number | null): void {
  const { context, width, height, color } = pen;
  if (marked) drawSpan(pen, steps, marked);
  if (hovered === null) return;
  context.fillStyle = color('--muted');
  context.fillRect(Math.round(xOf(steps, width)(hovered + 0.5)), TOP_PX, 1, height - TOP_PX - BOTTOM_PX);
}

function drawPeak({ context, width, color }: Pen, x: number, y: number, bytes: number): void {
  context.fillStyle = color('--bad');
  context.beginPath();
  context.arc(x, y, 4, 0, 7);
  context.fill();
  const isRight = x > width / 2;
  context.textAlign = isRight ? 'right' : 'left';
  context.textBaseline = 'middle';
  context.fillText(`Peak ${format(bytes, 'bytes')}`, x + (isRight ? -9 : 9), Math.max(9, y - 6));
}

/** Height of an offset in the map. */
function offsetY({ height }: Pen, { low, high }: Extent): (bytes: number) => number {
  const room = height - TOP_PX - BOTTOM_PX;
  return (bytes) => TOP_PX + room * (1 - (bytes - low) / Math.max(1, high - low));
}

/** Draws within the map's plot area, between its axes. */
function withinMap({ context, width, height }: Pen, draw: () => void): void {
  context.save();
  context.beginPath();
  context.rect(LEFT_PX, TOP_PX, width - LEFT_PX - RIGHT_PX, height - TOP_PX - BOTTOM_PX);
  context.clip();
  draw();
  context.restore();
}

function blockBox(pen: Pen, block: Buffer, steps: Steps, extent: Extent): [number, number, number, number] {
  const [x, y] = [xOf(steps, pen.width), offsetY(pen, extent)];
  const [left, top] = [x(block.first), y((block.offsetBytes ?? 0) + block.sizeBytes)];
  return [left, top, x(block.last + 1) - left, y(block.offsetBytes ?? 0) - top];
}

function drawBlock(
  pen: Pen,
  block: Buffer,
  [left, top, width, height]: [number, number, number, number],
  colors: Colors,
): void {
  const { context, color } = pen;
  context.fillStyle = color(colors.token(block));
  context.globalAlpha = BLOCK_ALPHA;
  context.fillRect(
    left,
    top,
    Math.max(1, width - (width > 3 ? 1 : 0)),
    Math.max(1, height - (height > 3 ? 1 : 0)),
  );
  if (width > 70 && height > 14) drawName(pen, block.instruction, [left, top, width, height]);
}

export function drawBlocks(pen: Pen, { blocks, steps, colors }: OrderPicture, extent: Extent): void {
  withinMap(pen, () => {
    for (const block of blocks)
      if (block.offsetBytes !== null) drawBlock(pen, block, blockBox(pen, block, steps, extent), colors);
  });
}

/** The axes, and the layer above the map: the highlighted block. */
export function drawMap(pen: Pen, { steps, marked, colors }: OrderPicture, extent: Extent): void {
  const { context, color } = pen;
  drawAxes(pen, steps, extent, 'Offset');
  if (!marked || marked.offsetBytes === null) return;
  const box = blockBox(pen, marked, steps, extent);
  withinMap(pen, () => {
    drawBlock(pen, marked, box, colors);
    context.globalAlpha = 1;
    context.lineWidth = 2;
    context.strokeStyle = color('--text');
    context.strokeRect(box[0], box[1], Math.max(1, box[2]), Math.max(1, box[3]));
  });
}

function drawName(
  { context, color }: Pen,
  name: string,
  [left, top, width, height]: [number, number, number, number],
): void {
  context.save();
  context.beginPath();
  context.rect(left, top, width - 4, height);
  context.clip();
  context.globalAlpha = 1;
  context.fillStyle = color('--bg');
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillText(name, left + 5, top + height / 2);
  context.restore();
}
