/** The map of hosts, chips and cores as a heat map on a canvas, with links and groups of the core under the pointer. */
import type { VNode } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { rgbOf, tokenColor } from '../../base/color';
import { isDark } from '../../base/theme';
import { useWidth } from '../../widgets/size';
import { coreAt, layoutOf, shareOf, type Core, type Layout, type Link } from './model';

const MAX_HEIGHT_PX = 420;
const MAX_CELL_PX = 56;
const N_COLORS = 128;
const MARGIN_PX = 4;
const NAME_PX = 14;

export interface MapProps {
  label: string;
  cores: readonly Core[];
  values: Float64Array;
  range: readonly [number, number];
  token: string;
  links: readonly Link[];
  /** The core whose links and group are shown, -1 none; `peers`: its group. */
  focus: number;
  peers: readonly number[];
  onPoint: (core: number) => void;
  onPick: (core: number) => void;
}

/** Colours from almost the page's to the token's. */
export function ramp(token: string, n = N_COLORS): string[] {
  const [from, to] = [rgbOf(tokenColor('--hover')), rgbOf(tokenColor(token))];
  return Array.from({ length: n }, (_, i) => `rgb(${from.map((low, channel) => Math.round(255 * (low + ((to[channel] as number) - low) * (i / (n - 1))))).join(' ')})`);
}

interface Placed extends Layout {
  cell: number;
  /** Room above each row of hosts for their names; 0 where cells are too small for words. */
  width: number;
  height: number;
}

function placed(cores: readonly Core[], width: number): Placed {
  const layout = layoutOf(cores, width - 2 * MARGIN_PX, MAX_HEIGHT_PX);
  const cell = Math.max(2, Math.min(MAX_CELL_PX, (width - 2 * MARGIN_PX) / layout.columns, MAX_HEIGHT_PX / layout.rows));
  return { ...layout, cell, width, height: Math.ceil(layout.rows * cell + 2 * MARGIN_PX + NAME_PX) };
}

function drawLinks(context: CanvasRenderingContext2D, at: Placed, { links, focus }: MapProps): void {
  const middle = (core: number): [number, number] => [MARGIN_PX + ((at.x[core] as number) + 0.5) * at.cell, MARGIN_PX + ((at.y[core] as number) + 0.5) * at.cell];
  context.lineWidth = 1.5;
  for (const { source, target } of links) {
    if ((source !== focus && target !== focus) || source < 0 || target < 0) continue;
    context.strokeStyle = context.fillStyle = tokenColor(source === focus ? '--accent' : '--bad');
    const [[x0, y0], [x1, y1]] = [middle(source), middle(target)];
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
    const angle = Math.atan2(y1 - y0, x1 - x0);
    context.beginPath();
    context.moveTo(x1, y1);
    for (const turn of [2.7, -2.7]) context.lineTo(x1 + 8 * Math.cos(angle + turn), y1 + 8 * Math.sin(angle + turn));
    context.fill();
  }
}

function drawMap(context: CanvasRenderingContext2D, at: Placed, props: MapProps): void {
  const { values, range, token, focus, peers } = props;
  const colors = ramp(token);
  const gap = at.cell > 6 ? 1 : 0;
  const fill = (core: number): [number, number, number, number] => [MARGIN_PX + (at.x[core] as number) * at.cell, MARGIN_PX + (at.y[core] as number) * at.cell, at.cell - gap, at.cell - gap];
  context.clearRect(0, 0, at.width, at.height);
  for (let core = 0; core < values.length; core++) {
    context.fillStyle = colors[Math.round(shareOf(values[core] as number, range) * (N_COLORS - 1))] as string;
    context.fillRect(...fill(core));
  }
  context.strokeStyle = tokenColor('--line-strong');
  context.lineWidth = 1;
  for (const { x, y, width, height } of at.blocks) context.strokeRect(MARGIN_PX + x * at.cell - 1.5, MARGIN_PX + y * at.cell - 1.5, width * at.cell + 2, height * at.cell + 2);
  context.lineWidth = 2;
  context.strokeStyle = tokenColor('--c-collective');
  for (const core of peers.length < values.length ? peers : []) context.strokeRect(...fill(core));
  if (focus >= 0) {
    context.strokeStyle = tokenColor('--text');
    context.strokeRect(...fill(focus));
    drawLinks(context, at, props);
  }
}

export function Topology(props: MapProps): VNode {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const at = useMemo(() => (width ? placed(props.cores, width) : null), [props.cores, width]);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context || !at) return;
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(at.width * ratio), Math.round(at.height * ratio)];
    if (element.width !== wide || element.height !== high) [element.width, element.height] = [wide, high];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawMap(context, at, props);
  }, [at, props.values, props.range, props.token, props.links, props.focus, props.peers, isDark.value]);
  const coreOf = (event: MouseEvent): number => {
    if (!at) return -1;
    const { left, top } = (event.currentTarget as Element).getBoundingClientRect();
    return coreAt(at, (event.clientX - left - MARGIN_PX) / at.cell, (event.clientY - top - MARGIN_PX) / at.cell);
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    props.onPick((Math.max(props.focus, 0) + step + props.cores.length) % props.cores.length);
  };
  return (
    <div class="pod-map" ref={box} style={{ height: `${at?.height ?? MAX_HEIGHT_PX}px` }}>
      <canvas
        ref={canvas}
        role="img"
        tabIndex={0}
        aria-label={props.label}
        style={{ width: `${at?.width ?? 0}px`, height: `${at?.height ?? 0}px` }}
        onPointerMove={(event) => props.onPoint(coreOf(event))}
        onPointerLeave={() => props.onPoint(-1)}
        onClick={(event) => props.onPick(coreOf(event))}
        onKeyDown={onKey}
      />
    </div>
  );
}
