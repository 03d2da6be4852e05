/**
 * Memory over program order: bytes in use after each step with the peak marked, and below it the offset and
 * lifetime of each buffer.
 */
import type { VNode } from 'preact';
import { useCallback, useMemo, useState } from 'preact/hooks';
import { format, plural } from '../../base/units';
import { Canvas, type CanvasProps, type Pen, type Spot } from './canvas';
import {
  blockAt,
  offsetsOf,
  pointAt,
  stepParams,
  zoomed,
  type Buffer,
  type Extent,
  type Point,
  type Steps,
} from './model';
import {
  BOTTOM_PX,
  drawBlocks,
  drawHeld,
  drawMap,
  drawPointed,
  LEFT_PX,
  OTHERS_ALPHA,
  RIGHT_PX,
  TOP_PX,
  type OrderPicture,
} from './order_drawing';

const TIMELINE_PX = 210;
const MAP_PX = 300;

export interface OrderProps extends OrderPicture {
  nSteps: number;
  temporaryBytes: number;
  onHover: (buffer: Buffer | null) => void;
  onPick: (buffer: Buffer | null) => void;
  onSteps: (change: Record<string, string | undefined>) => void;
}

function stepAt(steps: Steps, { x, width }: Spot): number {
  return (
    steps.first + ((x - LEFT_PX) / Math.max(1, width - LEFT_PX - RIGHT_PX)) * (steps.last - steps.first + 1)
  );
}

function Readout({ point, nSteps }: { point: Point | null; nSteps: number }): VNode {
  if (!point) return <p class="mv-readout muted">Drag to zoom into steps, or use Ctrl + wheel.</p>;
  return (
    <p class="mv-readout">
      Step {point.step.toLocaleString('en-US')} <span class="muted">of {nSteps.toLocaleString('en-US')}</span>{' '}
      · {point.instruction ? <code>{point.instruction}</code> : <span class="muted">unnamed</span>} ·{' '}
      <b>{format(point.heldBytes, 'bytes')}</b>{' '}
      <span class="muted">({format(point.unpaddedBytes, 'bytes')} without padding)</span>
    </p>
  );
}

function Buttons({
  steps,
  nSteps,
  peakStep,
  onSteps,
}: Pick<OrderProps, 'steps' | 'nSteps' | 'peakStep' | 'onSteps'>): VNode {
  const about =
    peakStep !== null && peakStep >= steps.first && peakStep <= steps.last
      ? peakStep
      : (steps.first + steps.last) / 2;
  const isAll = steps.first <= 0 && steps.last >= nSteps - 1;
  const button = (label: string, sign: string, next: () => Steps, disabled = false): VNode => (
    <button
      type="button"
      class="button small"
      aria-label={label}
      data-tip={label}
      disabled={disabled}
      onClick={() => onSteps(stepParams(next(), nSteps))}
    >
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

type Picture = Pick<CanvasProps, 'ground' | 'groundAlpha' | 'draw'>;

function usePictures(
  props: OrderProps,
  extent: Extent,
  hovered: number | null,
): { timeline: Picture; map: Picture } {
  const { points, blocks, steps, marked, colors, peakBytes } = props;
  const held = useCallback((pen: Pen) => drawHeld(pen, props), [points, steps, peakBytes]);
  const pointed = useCallback((pen: Pen) => drawPointed(pen, props, hovered), [steps, marked, hovered]);
  const boxes = useCallback((pen: Pen) => drawBlocks(pen, props, extent), [blocks, steps, extent, colors]);
  const map = useCallback((pen: Pen) => drawMap(pen, props, extent), [steps, marked, extent, colors]);
  return {
    timeline: { ground: held, draw: pointed },
    map: { ground: boxes, groundAlpha: marked ? OTHERS_ALPHA : 1, draw: map },
  };
}

export function OrderCharts(props: OrderProps): VNode {
  const { points, blocks, steps, nSteps, temporaryBytes, onSteps, onHover, onPick } = props;
  const [hovered, setHovered] = useState<number | null>(null);
  const whole = useMemo(() => offsetsOf(blocks, temporaryBytes), [blocks, temporaryBytes]);
  const [offsets, setOffsets] = useState<Extent | null>(null);
  const extent = offsets ?? whole;
  const hold = (spot: Spot | null): number | null =>
    spot && spot.x >= LEFT_PX && spot.x <= spot.width - RIGHT_PX ? Math.floor(stepAt(steps, spot)) : null;
  const zoom = (spot: Spot, delta: number): void =>
    onSteps(stepParams(zoomed(steps, nSteps, Math.exp(delta * 0.002), stepAt(steps, spot)), nSteps));
  const drag = (from: Spot, to: Spot): void => {
    const [first, last] = [Math.floor(stepAt(steps, from)), Math.floor(stepAt(steps, to))].sort(
      (a, b) => a - b,
    ) as [number, number];
    onSteps(
      stepParams(
        { first: Math.max(0, first), last: Math.min(nSteps - 1, Math.max(last, first + 1)) },
        nSteps,
      ),
    );
  };
  const offsetAt = (spot: Spot): number =>
    extent.low + (1 - (spot.y - TOP_PX) / (spot.height - TOP_PX - BOTTOM_PX)) * (extent.high - extent.low);
  const under = (spot: Spot): Buffer | null => blockAt(blocks, stepAt(steps, spot), offsetAt(spot));
  const dragMap = (from: Spot, to: Spot): void => {
    drag(from, to);
    const [a, b] = [offsetAt(from), offsetAt(to)];
    if (Math.abs(from.y - to.y) > 12) setOffsets({ low: Math.max(0, Math.min(a, b)), high: Math.max(a, b) });
  };
  const { timeline, map } = usePictures(props, extent, hovered);
  const showAll = (change: Record<string, string | undefined>): void => {
    setOffsets(null);
    onSteps(change);
  };
  const peakPlace = props.peakStep === null ? '' : ` at step ${props.peakStep.toLocaleString('en-US')}`;
  const peak = `${format(props.peakBytes, 'bytes')}${peakPlace}`;
  return (
    <div class="mv-order">
      <div class="mv-line">
        <Readout point={hovered === null ? null : pointAt(points, hovered)} nSteps={nSteps} />
        <Buttons steps={steps} nSteps={nSteps} peakStep={props.peakStep} onSteps={showAll} />
      </div>
      <Canvas
        height={TIMELINE_PX}
        label={`Memory in use over ${plural(nSteps, 'step')}, peak ${peak}`}
        {...timeline}
        onPoint={(spot) => setHovered(hold(spot))}
        onDrag={drag}
        onWheel={zoom}
      />
      <Canvas
        height={MAP_PX}
        label={`Allocation map: ${blocks.length.toLocaleString('en-US')} temporary buffers by offset and step`}
        {...map}
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
