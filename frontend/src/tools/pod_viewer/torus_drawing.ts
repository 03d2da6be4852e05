/** Draws what is around the cells of a slice: links, hosts, places, names, and the route of a channel. */
import { rgbOf, tokenColor } from '../../base/color';
import { shareOf, type Core, type Link, type Load, type Slice } from './model';
import { MARGIN_PX, type Placed } from './pixels';
import { linkLines, NAMED_FROM_PX, routeOf, shortNames } from './torus';

const FONT = 'system-ui, sans-serif';
const LABEL_PX = 10.5;
const ARROW_PX = 7;
const LOAD_PX = 3;
/** Between the blocks of a grid, in cells: room for a host's name. */
const GRID_GAP = 0.5;

function onPage(layout: Placed, [x, y]: readonly [number, number]): [number, number] {
  return [MARGIN_PX + x * layout.cell, MARGIN_PX + y * layout.cell];
}

/** Below the cells: the links, the chips that were not captured, and the labels of the axes. */
export function drawAround(context: CanvasRenderingContext2D, layout: Placed): void {
  const { torus } = layout;
  if (!torus) return;
  context.lineWidth = 1.25;
  context.strokeStyle = tokenColor('--line-strong');
  for (const isWrap of [false, true]) {
    context.setLineDash(isWrap ? [2, 2] : []);
    context.beginPath();
    for (const line of torus.lines) {
      if (line.isWrap !== isWrap) continue;
      context.moveTo(...onPage(layout, line.from));
      context.lineTo(...onPage(layout, line.to));
    }
    context.stroke();
  }
  context.fillStyle = tokenColor('--bg');
  context.beginPath();
  for (const place of torus.missing) {
    const [x, y] = onPage(layout, place);
    context.rect(x, y, torus.chipWidth * layout.cell - 1, layout.cell - 1);
  }
  context.fill();
  context.stroke();
  context.setLineDash([]);
  context.textBaseline = 'middle';
  for (const { x, y, text, align, isStrong } of torus.labels) {
    context.font = `${isStrong ? '600 ' : ''}${LABEL_PX}px ${FONT}`;
    context.fillStyle = tokenColor(isStrong ? '--text' : '--muted');
    context.textAlign = align;
    context.fillText(text, ...onPage(layout, [x, y]));
  }
}

/** The links between chips in colors from the plain links' to that of the token, by latency. */
export function drawLoads(
  context: CanvasRenderingContext2D,
  layout: Placed,
  slice: Slice,
  cores: readonly Core[],
  { links, range }: { links: readonly Load[]; range: readonly [number, number] },
  token: string,
): void {
  const { torus } = layout;
  if (!torus) return;
  const [low, high] = [rgbOf(tokenColor('--line-strong')), rgbOf(tokenColor(token))];
  context.lineWidth = LOAD_PX;
  context.setLineDash([]);
  for (const { source, target, latencyPs } of links) {
    const [from, to] = [cores[source]?.place, cores[target]?.place];
    if (!from || !to) continue;
    const share = shareOf(latencyPs, range);
    const color = low.map((channel, i) => Math.round(255 * (channel + ((high[i] ?? 0) - channel) * share)));
    context.strokeStyle = `rgb(${color.join(' ')})`;
    context.beginPath();
    for (const [start, end] of linkLines(torus, slice, from, to)) {
      context.moveTo(...onPage(layout, start));
      context.lineTo(...onPage(layout, end));
    }
    context.stroke();
  }
}

/** Above the cells, where they are large enough: the chips' numbers and the hosts' names. */
export function drawNames(context: CanvasRenderingContext2D, layout: Placed, cores: readonly Core[]): void {
  const { torus, cell } = layout;
  if (cell < NAMED_FROM_PX) return;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = tokenColor('--text');
  context.font = `${Math.min(11, cell * 0.45)}px ${FONT}`;
  if (!torus) {
    drawGridNames(context, layout, cores);
    return;
  }
  const named = new Set<string>();
  cores.forEach(({ place, chip, chipId }) => {
    const key = place?.join(',') ?? '';
    if (!place || named.has(key)) return;
    named.add(key);
    const [x, y] = onPage(layout, torus.at(place));
    context.fillText(String(chipId ?? chip), x + (torus.chipWidth * cell) / 2, y + cell / 2);
  });
  const names = shortNames([...new Set(cores.map(({ host }) => host))]);
  context.font = `${LABEL_PX}px ${FONT}`;
  context.fillStyle = tokenColor('--muted');
  for (const { host, x, y, width, height } of layout.blocks) {
    const text = names.get(host) ?? host;
    // Between the first two rows of chips; a single row has no room.
    if (height < 2 || context.measureText(text).width > width * cell) continue;
    const [left, top] = onPage(layout, [x, y]);
    const rows = torus.at([0, 1, 0])[1] - torus.at([0, 0, 0])[1];
    drawOnBackground(context, text, left + (width * cell) / 2, top + (0.14 + (rows + 1) / 2) * cell);
  }
}

/** Without places: in each cell the number at the end of the core's name, below each block its host. */
function drawGridNames(context: CanvasRenderingContext2D, layout: Placed, cores: readonly Core[]): void {
  const { cell } = layout;
  cores.forEach(({ name }, core) => {
    const number = /\d+$/.exec(name)?.[0] ?? '';
    context.fillText(number, ...onPage(layout, middleOf(layout, core)));
  });
  const names = shortNames([...new Set(cores.map(({ host }) => host))]);
  context.font = `${LABEL_PX}px ${FONT}`;
  context.fillStyle = tokenColor('--muted');
  for (const { host, x, y, width, height } of layout.blocks) {
    const text = names.get(host) ?? host;
    if (context.measureText(text).width > (width + GRID_GAP) * cell) continue;
    const [left, bottom] = onPage(layout, [x, y + height]);
    context.fillText(text, left + (width * cell) / 2, bottom + LABEL_PX - 1);
  }
}

function drawOnBackground(context: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  const { width } = context.measureText(text);
  const color = context.fillStyle;
  context.fillStyle = tokenColor('--bg');
  context.fillRect(x - width / 2 - 2, y - LABEL_PX / 2, width + 4, LABEL_PX);
  context.fillStyle = color;
  context.fillText(text, x, y);
}

/** The link of a channel with both of its ends. */
export function drawRoute(
  context: CanvasRenderingContext2D,
  layout: Placed,
  slice: Slice | null,
  cores: readonly Core[],
  channel: Link,
): void {
  context.strokeStyle = tokenColor('--accent');
  context.lineWidth = 2;
  for (const core of [channel.source, channel.target])
    if (cores[core])
      context.strokeRect(
        ...onPage(layout, [layout.x[core] as number, layout.y[core] as number]),
        layout.cell - 1,
        layout.cell - 1,
      );
  drawPath(context, layout, slice, cores, channel);
}

/** A link with an arrow at its end, in the accent's color; dashed if it spans several links of the slice. */
export function drawPath(
  context: CanvasRenderingContext2D,
  layout: Placed,
  slice: Slice | null,
  cores: readonly Core[],
  { source, target }: Link,
  token = '--accent',
): void {
  const [from, to] = [cores[source]?.place, cores[target]?.place];
  const route =
    layout.torus && slice && from && to
      ? routeOf(layout.torus, slice, from, to)
      : { points: [middleOf(layout, source), middleOf(layout, target)], isGuess: !!slice };
  const points = route.points.map((point) => onPage(layout, point));
  const [before, last] = [points.at(-2), points.at(-1)];
  if (!before || !last) return;
  context.strokeStyle = context.fillStyle = tokenColor(token);
  context.setLineDash(route.isGuess ? [5, 3] : []);
  context.lineJoin = 'round';
  context.beginPath();
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
  context.setLineDash([]);
  const angle = Math.atan2(last[1] - before[1], last[0] - before[0]);
  context.beginPath();
  context.moveTo(...last);
  for (const turn of [2.7, -2.7])
    context.lineTo(last[0] + ARROW_PX * Math.cos(angle + turn), last[1] + ARROW_PX * Math.sin(angle + turn));
  context.fill();
}

function middleOf(layout: Placed, core: number): [number, number] {
  return [(layout.x[core] ?? 0) + 0.5, (layout.y[core] ?? 0) + 0.5];
}
