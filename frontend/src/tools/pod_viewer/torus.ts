/** Places of chips in their slice, planes of z side by side, with links, wrap links and labels. Pure. */
import type { Core, Layout, Slice } from './model';

interface Line {
  from: readonly [number, number];
  to: readonly [number, number];
  /** Leads over the end of an axis to its other end. */
  isWrap: boolean;
}

interface Label {
  x: number;
  y: number;
  text: string;
  align: 'left' | 'center' | 'right';
  isStrong: boolean;
}

/** What is drawn around the cells; in cells. */
export interface Torus {
  lines: Line[];
  labels: Label[];
  /** Left and top of the chips that were not captured, and the width of a chip. */
  missing: [number, number][];
  chipWidth: number;
  /** Left and top of a chip by its place. */
  at: (place: readonly number[]) => [number, number];
}

const GAP_X = 0.5;
/** Room for a host's name between two rows of its chips. */
const GAP_Y = { named: 0.8, plain: 0.45 };
const STUB = 0.42;
const MARGIN = { left: 50, right: 26, top: 28, bottom: 34 };
const PLANE_GAP = { across: 62, down: 80 };
export const MOST_CELL_PX = 38;
/** From this size of a cell on, hosts and chips are named. */
export const NAMED_FROM_PX = 17;
/** From this many pixels on, the places along an axis are all labeled; below, each fourth. */
const LABEL_PX = 22;

interface Sizes {
  cell: number;
  perRow: number;
  gapY: number;
}

/** Cells as large as the box allows: over all numbers of planes per row, with names where they fit. */
function sizesFor(slice: Slice, perChip: number, width: number, height: number): Sizes {
  const [nx, ny, nz] = slice.size;
  let best: Sizes = { cell: 0, perRow: 1, gapY: GAP_Y.plain };
  for (const gapY of [GAP_Y.plain, GAP_Y.named])
    for (let perRow = 1; perRow <= nz; perRow++) {
      const nRows = Math.ceil(nz / perRow);
      const across = width - MARGIN.left - MARGIN.right - (perRow - 1) * PLANE_GAP.across;
      const down = height - MARGIN.top - MARGIN.bottom - (nRows - 1) * PLANE_GAP.down;
      const cell = Math.min(
        across / (perRow * ((nx - 1) * (perChip + GAP_X) + perChip)),
        down / (nRows * ((ny - 1) * (1 + gapY) + 1)),
        MOST_CELL_PX,
      );
      if (gapY === GAP_Y.named && cell < NAMED_FROM_PX) continue;
      if (cell > best.cell || (gapY === GAP_Y.named && best.gapY !== gapY)) best = { cell, perRow, gapY };
    }
  return { ...best, cell: Math.max(best.cell, 2) };
}

function everyPlace([nx, ny, nz]: Slice['size']): number[][] {
  return Array.from({ length: nx * ny * nz }, (_, i) => [
    i % nx,
    Math.floor(i / nx) % ny,
    Math.floor(i / (nx * ny)),
  ]);
}

const keyOf = (place: readonly number[]): string => place.join(',');

/** The names of hosts without what all of them begin with; `host 3` where a number is left. */
export function shortNames(hosts: readonly string[]): Map<string, string> {
  const [first = ''] = hosts;
  let shared = hosts.length > 1 ? first.length : 0;
  for (const host of hosts) while (!host.startsWith(first.slice(0, shared))) shared--;
  while (shared > 0 && /\d/.test(first.charAt(shared - 1))) shared--;
  return new Map(
    hosts.map((host) => {
      const rest = host.slice(shared) || host;
      return [host, /^\d+$/.test(rest) ? `host ${rest}` : rest];
    }),
  );
}

/** A box around the chips of each host, one in each plane that it has chips in. */
function hostBoxes(cores: readonly Core[], at: Torus['at'], perChip: number): Layout['blocks'] {
  const boxes = new Map<string, { host: string; x0: number; y0: number; x1: number; y1: number }>();
  for (const { host, place } of cores) {
    if (!place) continue;
    const [x, y] = at(place);
    const key = `${host}\n${place[2]}`;
    const box = boxes.get(key) ?? { host, x0: x, y0: y, x1: x, y1: y };
    boxes.set(key, {
      host,
      x0: Math.min(box.x0, x),
      y0: Math.min(box.y0, y),
      x1: Math.max(box.x1, x),
      y1: Math.max(box.y1, y),
    });
  }
  const pad = 0.14;
  return [...boxes.values()].map(({ host, x0, y0, x1, y1 }) => ({
    host,
    x: x0 - pad,
    y: y0 - pad,
    width: x1 - x0 + perChip + 2 * pad,
    height: y1 - y0 + 1 + 2 * pad,
  }));
}

/** Links within a plane, and the stubs of its wrap links. */
function planeLines(slice: Slice, z: number, at: Torus['at'], perChip: number): Line[] {
  const [nx, ny] = slice.size;
  const lines: Line[] = [];
  const add = (from: [number, number], to: [number, number], isWrap = false): void => {
    lines.push({ from, to, isWrap });
  };
  for (let y = 0; y < ny; y++) {
    const [[x0, top], [x1]] = [at([0, y, z]), at([nx - 1, y, z])];
    const middle = top + 0.5;
    if (nx > 1) add([x0 + perChip / 2, middle], [x1 + perChip / 2, middle]);
    if (!slice.wraps[0]) continue;
    add([x0 - STUB, middle], [x0, middle], true);
    add([x1 + perChip, middle], [x1 + perChip + STUB, middle], true);
  }
  for (let x = 0; x < nx; x++) {
    const [[left, y0], [, y1]] = [at([x, 0, z]), at([x, ny - 1, z])];
    const middle = left + perChip / 2;
    if (ny > 1) add([middle, y0 + 0.5], [middle, y1 + 0.5]);
    if (!slice.wraps[1]) continue;
    add([middle, y0 - STUB], [middle, y0], true);
    add([middle, y1 + 1], [middle, y1 + 1 + STUB], true);
  }
  return lines;
}

/** Which places of an axis are labeled: all, or the first of every four. */
function labeled(n: number, pitchPx: number): number[] {
  const every = pitchPx >= LABEL_PX ? 1 : n > 8 ? 4 : 2;
  return Array.from({ length: Math.ceil(n / every) }, (_, i) => i * every);
}

interface Planes {
  slice: Slice;
  at: Torus['at'];
  perChip: number;
  sizes: Sizes;
}

function planeLabels({ slice, at, perChip, sizes: { cell, gapY } }: Planes, z: number): Label[] {
  const [nx, ny] = slice.size;
  const labels: Label[] = [];
  const below = at([0, ny - 1, z])[1] + 1 + (STUB + 11 / cell);
  for (const x of labeled(nx, (perChip + GAP_X) * cell))
    labels.push({
      x: at([x, 0, z])[0] + perChip / 2,
      y: below,
      text: x ? String(x) : 'x = 0',
      align: 'center',
      isStrong: false,
    });
  for (const y of labeled(ny, (1 + gapY) * cell))
    labels.push({
      x: at([0, y, z])[0] - STUB - 5 / cell,
      y: at([0, y, z])[1] + 0.5,
      text: y ? String(y) : 'y = 0',
      align: 'right',
      isStrong: false,
    });
  return labels;
}

/** Titles of the planes, with the links from each to the next. */
function zAxis({ slice, at, perChip, sizes: { cell, perRow } }: Planes): { lines: Line[]; labels: Label[] } {
  const [nx, , nz] = slice.size;
  const [lines, labels]: [Line[], Label[]] = [[], []];
  if (nz < 2) return { lines, labels };
  const middle = (z: number): [number, number] => [
    at([0, 0, z])[0] + ((nx - 1) * (perChip + GAP_X) + perChip) / 2,
    at([0, 0, z])[1] - STUB - 9 / cell,
  ];
  const half = 26 / cell;
  for (let z = 0; z < nz; z++) {
    const [x, y] = middle(z);
    labels.push({ x, y, text: `z = ${z}`, align: 'center', isStrong: true });
    const isLast = z === nz - 1;
    if (!isLast && (z + 1) % perRow)
      lines.push({ from: [x + half, y], to: [middle(z + 1)[0] - half, y], isWrap: false });
    if (!slice.wraps[2] || (z && !isLast)) continue;
    const side = isLast ? 1 : -1;
    lines.push({ from: [x + side * half, y], to: [x + side * (half + 24 / cell), y], isWrap: true });
    labels.push({
      x: x + side * (half + 28 / cell),
      y,
      text: `to z = ${isLast ? 0 : nz - 1}`,
      align: isLast ? 'left' : 'right',
      isStrong: false,
    });
  }
  return { lines, labels };
}

/** The chips of a slice at their places, in a box of that size. */
export function torusLayout(cores: readonly Core[], slice: Slice, width: number, height: number): Layout {
  const onChip = new Map<string, number[]>();
  cores.forEach(({ place }, row) => {
    if (place) onChip.set(keyOf(place), [...(onChip.get(keyOf(place)) ?? []), row]);
  });
  const perChip = Math.max(1, ...[...onChip.values()].map((rows) => rows.length));
  const sizes = sizesFor(slice, perChip, width, height);
  const { cell, perRow, gapY } = sizes;
  const [nx, ny, nz] = slice.size;
  const planeWidth = (nx - 1) * (perChip + GAP_X) + perChip;
  const planeHeight = (ny - 1) * (1 + gapY) + 1;
  const at = ([x = 0, y = 0, z = 0]: readonly number[]): [number, number] => [
    MARGIN.left / cell + (z % perRow) * (planeWidth + PLANE_GAP.across / cell) + x * (perChip + GAP_X),
    MARGIN.top / cell + Math.floor(z / perRow) * (planeHeight + PLANE_GAP.down / cell) + y * (1 + gapY),
  ];
  const nRows = Math.ceil(nz / perRow);
  const layout: Layout = {
    x: new Float32Array(cores.length),
    y: new Float32Array(cores.length),
    columns: at([nx - 1, 0, perRow - 1])[0] + perChip + MARGIN.right / cell,
    rows: at([0, ny - 1, (nRows - 1) * perRow])[1] + 1 + MARGIN.bottom / cell,
    blocks: hostBoxes(cores, at, perChip),
    torus: null,
  };
  for (const rows of onChip.values())
    rows.forEach((row, core) => {
      const [x, y] = at(cores[row]?.place ?? []);
      layout.x[row] = x + core;
      layout.y[row] = y;
    });
  const planes = { slice, at, perChip, sizes };
  const ofZ = zAxis(planes);
  const everyZ = Array.from({ length: nz }, (_, z) => z);
  layout.torus = {
    lines: [...everyZ.flatMap((z) => planeLines(slice, z, at, perChip)), ...ofZ.lines],
    labels: [...everyZ.flatMap((z) => planeLabels(planes, z)), ...ofZ.labels],
    missing: everyPlace(slice.size)
      .filter((place) => !onChip.has(keyOf(place)))
      .map(at),
    chipWidth: perChip,
    at,
  };
  return layout;
}

export interface Way {
  /** Signed moves along x, y and z the shorter way. */
  steps: [number, number, number];
  isWrapped: [boolean, boolean, boolean];
  hops: number;
}

/** The shortest way from a place to another. */
export function wayOf({ size, wraps }: Slice, from: readonly number[], to: readonly number[]): Way {
  const way: Way = { steps: [0, 0, 0], isWrapped: [false, false, false], hops: 0 };
  for (const axis of [0, 1, 2] as const) {
    const direct = (to[axis] ?? 0) - (from[axis] ?? 0);
    const around = direct - Math.sign(direct) * size[axis];
    way.isWrapped[axis] = wraps[axis] && Math.abs(around) < Math.abs(direct);
    way.steps[axis] = way.isWrapped[axis] ? around : direct;
    way.hops += Math.abs(way.steps[axis]);
  }
  return way;
}

export interface Route {
  points: [number, number][];
  /** More than one link: the way that the data takes is not known. */
  isGuess: boolean;
}

/** The link from one chip to another as a line of points in cells; empty on one chip. */
export function routeOf(torus: Torus, slice: Slice, from: readonly number[], to: readonly number[]): Route {
  const { steps, isWrapped, hops } = wayOf(slice, from, to);
  const [w, [x0, y0], [x1, y1]] = [torus.chipWidth, torus.at(from), torus.at(to)];
  const [a, b]: [number, number][] = [
    [x0 + w / 2, y0 + 0.5],
    [x1 + w / 2, y1 + 0.5],
  ] as [[number, number], [number, number]];
  if (hops === 0) return { points: [], isGuess: false };
  if (hops > 1) return { points: [a, b], isGuess: true };
  const [stepX, stepY] = steps.map(Math.sign) as [number, number, number];
  const out = STUB * 0.8;
  if (stepX && isWrapped[0]) {
    // Out at one side, below the row, in at the other.
    const [leave, enter] = [stepX > 0 ? x0 + w : x0, stepX > 0 ? x1 : x1 + w];
    const below = y0 + 1 + GAP_Y.plain / 2;
    return {
      points: [
        [leave, a[1]],
        [leave + stepX * out, a[1]],
        [leave + stepX * out, below],
        [enter - stepX * out, below],
        [enter - stepX * out, b[1]],
        [enter, b[1]],
      ],
      isGuess: false,
    };
  }
  if (stepY && isWrapped[1]) {
    const [leave, enter] = [stepY > 0 ? y0 + 1 : y0, stepY > 0 ? y1 : y1 + 1];
    const beside = x0 + w + GAP_X / 2;
    return {
      points: [
        [a[0], leave],
        [a[0], leave + stepY * out],
        [beside, leave + stepY * out],
        [beside, enter - stepY * out],
        [b[0], enter - stepY * out],
        [b[0], enter],
      ],
      isGuess: false,
    };
  }
  if (stepX)
    return {
      points: [
        [stepX > 0 ? x0 + w : x0, a[1]],
        [stepX > 0 ? x1 : x1 + w, b[1]],
      ],
      isGuess: false,
    };
  if (stepY)
    return {
      points: [
        [a[0], stepY > 0 ? y0 + 1 : y0],
        [b[0], stepY > 0 ? y1 : y1 + 1],
      ],
      isGuess: false,
    };
  // To another plane: above the chips' row, then down into the chip.
  const above = Math.min(y0, y1) - GAP_Y.plain / 2;
  return {
    points: [
      [a[0], y0],
      [a[0], above],
      [b[0], above],
      [b[0], y1],
    ],
    isGuess: false,
  };
}

type Point = [number, number];

/**
 * The lines of a link between neighbors: within a plane the line between the chips, of a wrap link its two
 * stubs, none to another plane.
 */
export function linkLines(
  torus: Torus,
  slice: Slice,
  from: readonly number[],
  to: readonly number[],
): [Point, Point][] {
  const { steps, isWrapped, hops } = wayOf(slice, from, to);
  if (hops !== 1 || steps[2]) return [];
  const { points } = routeOf(torus, slice, from, to);
  const [first, second, before, last] = [points[0], points[1], points.at(-2), points.at(-1)] as Point[];
  if (!first || !second || !before || !last) return [];
  return isWrapped.some(Boolean)
    ? [
        [first, second],
        [before, last],
      ]
    : [[first, last]];
}
