/** Memory over the program's order: bytes held after each step with the peak marked, and below it where each buffer lies and how long. */
import type { VNode } from 'preact';
import { useCallback, useMemo, useState } from 'preact/hooks';
import { format, scaleFor, threeDigits } from '../../base/units';
import { Canvas, type Pen, type Spot } from './canvas';
import { blockAt, offsetsOf, pointAt, stepParams, zoomed, type Buffer, type Colours, type Extent, type Point, type Steps } from './model';

const LEFT_PX = 64;
const RIGHT_PX = 14;
const TOP_PX = 18;
const BOTTOM_PX = 20;
const TIMELINE_PX = 210;
const MAP_PX = 300;
const TICK_PX = 110;

export interface OrderProps {
  points: readonly Point[];
  blocks: readonly Buffer[];
  steps: Steps;
  nSteps: number;
  peakStep: number | null;
  peakBytes: number;
  permanentBytes: number;
  temporaryBytes: number;
  /** The buffer whose life is marked. */
  marked: Buffer | null;
  colours: Colours;
  onHover: (buffer: Buffer | null) => void;
  onPick: (buffer: Buffer | null) => void;
  onSteps: (change: Record<string, string | undefined>) => void;
}

function xOf(steps: Steps, width: number): (step: number) => number {
  const scale = (width - LEFT_PX - RIGHT_PX) / Math.max(1, steps.last - steps.first + 1);
  return (step) => LEFT_PX + (step - steps.first) * scale;
}

function stepAt(steps: Steps, { x, width }: Spot): number {
  return steps.first + ((x - LEFT_PX) / Math.max(1, width - LEFT_PX - RIGHT_PX)) * (steps.last - steps.first + 1);
}

/** Round values of an axis. */
function ticks(low: number, high: number, most: number): number[] {
  const raw = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = Math.max(1e-9, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? power);
  const values = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) values.push(value);
  return values;
}

function drawAxes({ context, width, height, color }: Pen, steps: Steps, extent: Extent, title: string): (bytes: number) => number {
  const scale = scaleFor(extent.high, 'bytes');
  const room = height - TOP_PX - BOTTOM_PX;
  const yOf = (bytes: number): number => TOP_PX + room * (1 - (bytes - extent.low) / Math.max(1, extent.high - extent.low));
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

/** A line in steps, as far as it is known; each point holds to the next. */
function trace({ context }: Pen, points: readonly Point[], value: (point: Point) => number, at: { x: (step: number) => number; y: (bytes: number) => number; last: number }): void {
  context.beginPath();
  points.forEach((point, i) => {
    const [left, y] = [at.x(point.step), at.y(value(point))];
    if (i === 0) context.moveTo(left, y);
    else context.lineTo(left, y);
    context.lineTo(at.x(points[i + 1]?.step ?? at.last + 1), y);
  });
}

function drawTimeline(pen: Pen, props: OrderProps, hovered: number | null): void {
  const { context, width, height, color } = pen;
  const { points, steps, peakBytes, peakStep, permanentBytes, marked } = props;
  const y = drawAxes(pen, steps, { low: 0, high: Math.max(1, peakBytes * 1.06) }, 'Held');
  const x = xOf(steps, width);
  if (marked) drawSpan(pen, steps, marked);
  context.fillStyle = color('--c-input');
  context.globalAlpha = 0.16;
  context.fillRect(LEFT_PX, y(permanentBytes), width - LEFT_PX - RIGHT_PX, Math.max(0, y(0) - y(permanentBytes)));
  context.globalAlpha = 1;
  const at = { x, y, last: steps.last };
  trace(pen, points, (point) => point.heldBytes, at);
  context.lineTo(x(steps.last + 1), y(0));
  context.lineTo(x(points[0]?.step ?? steps.first), y(0));
  context.fillStyle = color('--q-0');
  context.globalAlpha = 0.22;
  context.fill();
  context.globalAlpha = 1;
  context.lineWidth = 1.5;
  context.strokeStyle = color('--q-0');
  trace(pen, points, (point) => point.heldBytes, at);
  context.stroke();
  context.lineWidth = 1;
  context.setLineDash([4, 3]);
  context.strokeStyle = color('--muted');
  trace(pen, points, (point) => point.unpaddedBytes, at);
  context.stroke();
  context.setLineDash([]);
  if (peakStep !== null && peakStep >= steps.first && peakStep <= steps.last) drawPeak(pen, (x(peakStep) + x(peakStep + 1)) / 2, y(peakBytes), peakBytes);
  if (hovered !== null) {
    context.fillStyle = color('--muted');
    context.fillRect(Math.round(x(hovered + 0.5)), TOP_PX, 1, height - TOP_PX - BOTTOM_PX);
  }
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

function drawMap(pen: Pen, props: OrderProps, extent: Extent): void {
  const { context, width, height, color } = pen;
  const { blocks, steps, marked, colours } = props;
  const y = drawAxes(pen, steps, extent, 'Offset');
  const x = xOf(steps, width);
  context.save();
  context.beginPath();
  context.rect(LEFT_PX, TOP_PX, width - LEFT_PX - RIGHT_PX, height - TOP_PX - BOTTOM_PX);
  context.clip();
  for (const block of blocks) {
    if (block.offsetBytes === null) continue;
    const [left, right] = [x(block.first), x(block.last + 1)];
    const [top, bottom] = [y(block.offsetBytes + block.sizeBytes), y(block.offsetBytes)];
    const isMarked = marked?.id === block.id;
    context.fillStyle = color(colours.token(block));
    context.globalAlpha = marked && !isMarked ? 0.45 : 0.85;
    context.fillRect(left, top, Math.max(1, right - left - (right - left > 3 ? 1 : 0)), Math.max(1, bottom - top - (bottom - top > 3 ? 1 : 0)));
    if (isMarked) {
      context.globalAlpha = 1;
      context.lineWidth = 2;
      context.strokeStyle = color('--text');
      context.strokeRect(left, top, Math.max(1, right - left), Math.max(1, bottom - top));
    }
    if (right - left > 70 && bottom - top > 14) drawName(pen, block.instruction, [left, top, right - left, bottom - top]);
  }
  context.restore();
  context.globalAlpha = 1;
}

function drawName({ context, color }: Pen, name: string, [left, top, width, height]: [number, number, number, number]): void {
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

function Readout({ point, nSteps }: { point: Point | null; nSteps: number }): VNode {
  if (!point) return <p class="mv-readout muted">Drag to zoom into steps; Ctrl and the wheel zoom too.</p>;
  return (
    <p class="mv-readout">
      Step {point.step.toLocaleString('en-US')} <span class="muted">of {nSteps.toLocaleString('en-US')}</span> · {point.instruction ? <code>{point.instruction}</code> : <span class="muted">unnamed</span>} ·{' '}
      <b>{format(point.heldBytes, 'bytes')}</b> <span class="muted">({format(point.unpaddedBytes, 'bytes')} without padding)</span>
    </p>
  );
}

function Buttons({ steps, nSteps, peakStep, onSteps }: Pick<OrderProps, 'steps' | 'nSteps' | 'peakStep' | 'onSteps'>): VNode {
  const about = peakStep !== null && peakStep >= steps.first && peakStep <= steps.last ? peakStep : (steps.first + steps.last) / 2;
  const isAll = steps.first <= 0 && steps.last >= nSteps - 1;
  const button = (label: string, sign: string, next: () => Steps, disabled = false): VNode => (
    <button type="button" class="button small" aria-label={label} data-tip={label} disabled={disabled} onClick={() => onSteps(stepParams(next(), nSteps))}>
      {sign}
    </button>
  );
  return (
    <span class="mv-zoom" role="group" aria-label="Zoom into steps">
      {button('Zoom in', '+', () => zoomed(steps, nSteps, 0.5, about), steps.last - steps.first < 4)}
      {button('Zoom out', '−', () => zoomed(steps, nSteps, 2, about), isAll)}
      {button('All steps', 'All', () => ({ first: 0, last: nSteps - 1 }), isAll)}
    </span>
  );
}

export function OrderCharts(props: OrderProps): VNode {
  const { points, blocks, steps, nSteps, temporaryBytes, onSteps, onHover, onPick } = props;
  const [hovered, setHovered] = useState<number | null>(null);
  const whole = useMemo(() => offsetsOf(blocks, temporaryBytes), [blocks, temporaryBytes]);
  const [offsets, setOffsets] = useState<Extent | null>(null);
  const extent = offsets ?? whole;
  const hold = (spot: Spot | null): number | null => (spot && spot.x >= LEFT_PX && spot.x <= spot.width - RIGHT_PX ? Math.floor(stepAt(steps, spot)) : null);
  const zoom = (spot: Spot, delta: number): void => onSteps(stepParams(zoomed(steps, nSteps, Math.exp(delta * 0.002), stepAt(steps, spot)), nSteps));
  const drag = (from: Spot, to: Spot): void => {
    const [first, last] = [Math.floor(stepAt(steps, from)), Math.floor(stepAt(steps, to))].sort((a, b) => a - b) as [number, number];
    onSteps(stepParams({ first: Math.max(0, first), last: Math.min(nSteps - 1, Math.max(last, first + 1)) }, nSteps));
  };
  const offsetAt = (spot: Spot): number => extent.low + (1 - (spot.y - TOP_PX) / (spot.height - TOP_PX - BOTTOM_PX)) * (extent.high - extent.low);
  const under = (spot: Spot): Buffer | null => blockAt(blocks, stepAt(steps, spot), offsetAt(spot));
  const dragMap = (from: Spot, to: Spot): void => {
    drag(from, to);
    const [a, b] = [offsetAt(from), offsetAt(to)];
    if (Math.abs(from.y - to.y) > 12) setOffsets({ low: Math.max(0, Math.min(a, b)), high: Math.max(a, b) });
  };
  const timeline = useCallback((pen: Pen) => drawTimeline(pen, props, hovered), [points, steps, props.marked, hovered, props.peakBytes]);
  const map = useCallback((pen: Pen) => drawMap(pen, props, extent), [blocks, steps, props.marked, extent, props.colours]);
  const showAll = (change: Record<string, string | undefined>): void => {
    setOffsets(null);
    onSteps(change);
  };
  return (
    <div class="mv-order">
      <div class="mv-line">
        <Readout point={hovered === null ? null : pointAt(points, hovered)} nSteps={nSteps} />
        <Buttons steps={steps} nSteps={nSteps} peakStep={props.peakStep} onSteps={showAll} />
      </div>
      <Canvas
        height={TIMELINE_PX}
        label={`Memory held over ${nSteps.toLocaleString('en-US')} steps, peak ${format(props.peakBytes, 'bytes')}${props.peakStep === null ? '' : ` at step ${props.peakStep.toLocaleString('en-US')}`}`}
        draw={timeline}
        onPoint={(spot) => setHovered(hold(spot))}
        onDrag={drag}
        onWheel={zoom}
      />
      <Canvas
        height={MAP_PX}
        label={`Allocation map: ${blocks.length.toLocaleString('en-US')} temporary buffers by offset and step`}
        draw={map}
        onPoint={(spot) => {
          setHovered(hold(spot));
          onHover(spot ? under(spot) : null);
        }}
        onPick={(spot) => onPick(under(spot))}
        onDrag={dragMap}
        onWheel={zoom}
      />
    </div>
  );
}
