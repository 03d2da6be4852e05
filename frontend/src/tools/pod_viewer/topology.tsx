/**
 * The map of hosts, chips and cores as a heat map, with links and groups of the core under the pointer on a
 * canvas above it.
 */
import type { VNode } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { rgbOf, tokenColor } from '../../base/color';
import { isDark } from '../../base/theme';
import { useWidth } from '../../widgets/size';
import { coreAt, layoutOf, type Core, type Link, type Load, type Slice } from './model';
import { cellRects, MARGIN_PX, paintCells, ramp, type Placed } from './pixels';
import { drawAround, drawLoads, drawNames, drawPath, drawRoute } from './torus_drawing';
import { MOST_CELL_PX, torusLayout } from './torus';

const MAX_HEIGHT_PX = 420;
const MAX_CELL_PX = 56;
const NAME_PX = 14;
const MAX_TORUS_HEIGHT_PX = 620;
/** Numbers are written onto cells: the strongest color is this far from the background. */
const STRONGEST = 0.75;

export interface MapProps {
  label: string;
  cores: readonly Core[];
  values: Float64Array;
  range: readonly [number, number];
  token: string;
  links: readonly Link[];
  /** The links of the slice by the latency of their channels, and the color of the longest; null: none. */
  loads: { links: readonly Load[]; range: readonly [number, number] } | null;
  linkToken: string;
  /** null: the places are unknown, and the hosts are drawn as blocks in a grid. */
  slice: Slice | null;
  /** The channel that is drawn as a route; null: none. */
  channel: Link | null;
  /** The core whose links and group are shown, -1 none; `peers`: its group. */
  focus: number;
  peers: readonly number[];
  onPoint: (core: number) => void;
  onPick: (core: number) => void;
}

function placed(cores: readonly Core[], slice: Slice | null, width: number): Placed {
  const [across, down] = [width - 2 * MARGIN_PX, slice ? MAX_TORUS_HEIGHT_PX : MAX_HEIGHT_PX];
  const layout = slice ? torusLayout(cores, slice, across, down) : layoutOf(cores, across, down);
  const most = slice ? MOST_CELL_PX : MAX_CELL_PX;
  const cell = Math.max(2, Math.min(most, across / layout.columns, down / layout.rows));
  return { ...layout, cell, width, height: Math.ceil(layout.rows * cell + 2 * MARGIN_PX + NAME_PX) };
}

/** The context of a canvas of that size, cleared, in the page's pixels. */
function cleared(element: HTMLCanvasElement | null, layout: Placed): CanvasRenderingContext2D | null {
  const context = element?.getContext('2d');
  if (!element || !context) return null;
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(layout.width * ratio), Math.round(layout.height * ratio)];
  if (element.width !== wide || element.height !== high) [element.width, element.height] = [wide, high];
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  return context;
}

function mixed(from: readonly number[], to: readonly number[], share: number): number[] {
  return from.map((low, i) => low + ((to[i] ?? low) - low) * share);
}

interface Picture {
  context: CanvasRenderingContext2D;
  image: ImageData;
  pixels: Uint32Array;
  rects: Int32Array;
}

/** The picture with the hosts' frames, into which cells are painted. */
function framed(element: HTMLCanvasElement | null, layout: Placed): Picture | null {
  const context = cleared(element, layout);
  if (!context) return null;
  context.strokeStyle = tokenColor('--line-strong');
  context.lineWidth = 1;
  for (const { x, y, width, height } of layout.blocks)
    context.strokeRect(
      MARGIN_PX + x * layout.cell - 1.5,
      MARGIN_PX + y * layout.cell - 1.5,
      width * layout.cell + 2,
      height * layout.cell + 2,
    );
  drawAround(context, layout);
  const { width, height } = context.canvas;
  if (!width || !height) return null;
  const image = context.getImageData(0, 0, width, height);
  return {
    context,
    image,
    pixels: new Uint32Array(image.data.buffer),
    rects: cellRects(layout, window.devicePixelRatio || 1),
  };
}

function drawLinks(context: CanvasRenderingContext2D, layout: Placed, props: MapProps): void {
  const { links, focus, cores, slice, channel } = props;
  if (channel) drawRoute(context, layout, slice, cores, channel);
  context.lineWidth = 1.5;
  for (const link of links) {
    const { source, target } = link;
    if ((source !== focus && target !== focus) || source < 0 || target < 0) continue;
    drawPath(context, layout, slice, cores, link, source === focus ? '--accent' : '--bad');
  }
}

function drawMarks(context: CanvasRenderingContext2D, layout: Placed, props: MapProps): void {
  const { cores, focus, peers } = props;
  const side = layout.cell - (layout.cell > 6 ? 1 : 0);
  const outline = (core: number): void =>
    context.rect(
      MARGIN_PX + (layout.x[core] as number) * layout.cell,
      MARGIN_PX + (layout.y[core] as number) * layout.cell,
      side,
      side,
    );
  context.lineWidth = 2;
  context.strokeStyle = tokenColor('--c-collective');
  context.beginPath();
  if (peers.length < cores.length) peers.forEach(outline);
  context.stroke();
  drawLinks(context, layout, props);
  if (focus < 0 || focus >= cores.length) return;
  context.strokeStyle = tokenColor('--text');
  context.beginPath();
  outline(focus);
  context.stroke();
}

export function Topology(props: MapProps): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [cells, names, marks] = [
    useRef<HTMLCanvasElement>(null),
    useRef<HTMLCanvasElement>(null),
    useRef<HTMLCanvasElement>(null),
  ];
  const picture = useRef<Picture | null>(null);
  const width = useWidth(box);
  const { values, range, token, focus, peers, links, loads, slice, channel } = props;
  const layout = useMemo(
    () => (width ? placed(props.cores, slice, width) : null),
    [props.cores, slice, width],
  );
  // Before the browser's own work of the frame: drawing later would cost a second frame.
  useLayoutEffect(() => {
    picture.current = layout && framed(cells.current, layout);
  }, [layout, isDark.value]);
  useLayoutEffect(() => {
    const above = layout && cleared(names.current, layout);
    if (!above) return;
    if (loads && slice) drawLoads(above, layout, slice, props.cores, loads, props.linkToken);
    drawNames(above, layout, props.cores);
  }, [layout, loads, isDark.value]);
  useLayoutEffect(() => {
    const { context, image, pixels, rects } = picture.current ?? {};
    if (!context || !image || !pixels || !rects) return;
    paintCells(
      pixels,
      image.width,
      rects,
      values,
      range,
      ramp(
        rgbOf(tokenColor('--hover')),
        mixed(rgbOf(tokenColor('--hover')), rgbOf(tokenColor(token)), STRONGEST),
      ),
    );
    context.putImageData(image, 0, 0);
  }, [layout, values, range, token, isDark.value]);
  useLayoutEffect(() => {
    const context = layout && cleared(marks.current, layout);
    if (context) drawMarks(context, layout, props);
  }, [layout, focus, peers, links, channel, isDark.value]);
  const coreOf = (event: MouseEvent): number => {
    if (!layout) return -1;
    const { left, top } = (event.currentTarget as Element).getBoundingClientRect();
    return coreAt(
      layout,
      (event.clientX - left - MARGIN_PX) / layout.cell,
      (event.clientY - top - MARGIN_PX) / layout.cell,
    );
  };
  /** Between hosts the last core under the pointer stays: otherwise its card would flicker. */
  const onMove = (event: PointerEvent): void => {
    const core = coreOf(event);
    if (core >= 0) props.onPoint(core);
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    props.onPick((Math.max(props.focus, 0) + step + props.cores.length) % props.cores.length);
  };
  const size = { width: `${layout?.width ?? 0}px`, height: `${layout?.height ?? 0}px` };
  return (
    <div class="pod-map" ref={box} style={{ height: `${layout?.height ?? MAX_HEIGHT_PX}px` }}>
      <canvas ref={cells} aria-hidden="true" style={size} />
      <canvas ref={names} aria-hidden="true" style={size} />
      <canvas
        ref={marks}
        role="img"
        tabIndex={0}
        aria-label={props.label}
        style={size}
        onPointerMove={onMove}
        onPointerLeave={() => props.onPoint(-1)}
        onClick={(event) => props.onPick(coreOf(event))}
        onKeyDown={onKey}
      />
    </div>
  );
}
