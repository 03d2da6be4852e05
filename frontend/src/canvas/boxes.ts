/**
 * Boxes of one batch as parallel arrays, and their conversion into the instance buffer that the renderers
 * draw.
 *
 *   boxes sorted by (row, start)          rowFirst = [0, 2, 5]
 *   row 0   [ 0 ]   [ 1 ]                 rowY     = [24, 42]     (NaN: the row is hidden)
 *   row 1   [2][3]     [4]
 *
 * Drawing knows rows and pixels, not tracks or traces: the layout supplies the position of each row.
 */

export interface Boxes {
  readonly n: number;
  readonly startPs: Float64Array;
  readonly durationPs: Float64Array;
  readonly nameId: Int32Array;
  readonly eventId: Float64Array;
  /** 1: one event, drawn exactly; more: that many events too short for a pixel. */
  readonly nMerged: Float64Array;
  readonly names: readonly string[];
  /** The style of each box: an index into the palette. */
  readonly style: Uint8Array;
  /** The longest event within a merged box; otherwise the event's own duration. */
  readonly longestPs: Float64Array;
  /** Boxes of row r are rowFirst[r] … rowFirst[r + 1] - 1. */
  readonly rowFirst: Int32Array;
}

/**
 * The position of each row of a batch, from the top of the content, in CSS pixels (see PIN_PX for negative
 * ones). NaN: it is hidden.
 */
export interface RowPlaces {
  readonly y: Float32Array;
  readonly height: Uint8Array;
}

/**
 * One instance is 16 bytes: float32 start and end from originPs (of an instant, how far its room reaches), float32
 * y, then four bytes: style, flags (MERGED, DIM, INSTANT), height, unused.
 */
export interface InstanceBatch {
  readonly n: number;
  readonly originPs: number;
  readonly bytes: ArrayBuffer;
  readonly floats: Float32Array;
  readonly marks: Uint8Array;
  /** Some instances are instants: they are drawn as diamonds over all boxes. */
  readonly hasInstants: boolean;
  /** Top, bottom and first instance of each visible row, from the top down; rowFirst ends with n. */
  readonly rowTop: Float32Array;
  readonly rowBottom: Float32Array;
  readonly rowFirst: Int32Array;
}

export const INSTANCE_BYTES = 16;
export const MERGED = 1;
export const DIM = 2;
export const INSTANT = 4;

/**
 * Half the width and height of an instant's diamond, in CSS pixels, where it has room. Closer to its neighbors it
 * is smaller and nearer to the row's lower edge, so that it hides neither boxes nor other instants.
 */
export const DIAMOND_PX = 5;
export const LEAST_DIAMOND_PX = 1.5;
const DIAMOND_FROM_PX = 8;

/** Whether rows of that height draw instants as diamonds; in lower ones they are a pixel wide. */
export function isDiamond(heightPx: number): boolean {
  return heightPx >= DIAMOND_FROM_PX;
}

/**
 * Pinned rows are placed this far above the top of the scrolled content: one batch holds both, each is drawn
 * in its own band.
 */
export const PIN_PX = 20_000;

/**
 * How far a box may extend beyond the window in the buffer, in windows. An event that began an hour before a
 * 1 µs window would leave float32 no digits for its other end; clipped at ten windows the error stays below
 * 0.01 px.
 */
const REACH = 10;

function isInstantBox(boxes: Boxes, i: number): boolean {
  return boxes.durationPs[i] === 0 && (boxes.nMerged[i] as number) <= 1;
}

/** The part of a neighboring box that a diamond may cover. */
const COVERED = 1 / 8;

/** How far the diamond of an instant may reach towards a neighbor whose edge is gapPs away. */
function roomTowards(boxes: Boxes, neighbor: number, gapPs: number): number {
  return isInstantBox(boxes, neighbor)
    ? gapPs / 2
    : Math.max(gapPs, 0) + COVERED * (boxes.durationPs[neighbor] as number);
}

/**
 * How far an instant's diamond may reach to either side: a little way over the next box of its row, and half way
 * to the next instant.
 */
function roomPs(boxes: Boxes, i: number, lo: number, hi: number): number {
  const start = boxes.startPs[i] as number;
  const [before, after] = [i - 1, i + 1];
  const left =
    before < lo
      ? Infinity
      : roomTowards(
          boxes,
          before,
          start - (boxes.startPs[before] as number) - (boxes.durationPs[before] as number),
        );
  const right = after < hi ? roomTowards(boxes, after, (boxes.startPs[after] as number) - start) : Infinity;
  return Math.min(left, right);
}

export function encodeInstances(
  boxes: Boxes,
  places: RowPlaces,
  isDim: Uint8Array | null,
  window: { readonly startPs: number; readonly endPs: number },
): InstanceBatch {
  const originPs = window.startPs;
  const reach = REACH * Math.max(window.endPs - window.startPs, 1);
  const bytes = new ArrayBuffer(boxes.n * INSTANCE_BYTES);
  const floats = new Float32Array(bytes);
  const marks = new Uint8Array(bytes);
  const rows: number[] = [];
  const rowFirst: number[] = [];
  let n = 0;
  let hasInstants = false;
  for (let row = 0; row + 1 < boxes.rowFirst.length; row++) {
    const y = places.y[row] as number;
    if (Number.isNaN(y)) continue;
    rows.push(row);
    rowFirst.push(n);
    const first = boxes.rowFirst[row] as number;
    const last = boxes.rowFirst[row + 1] as number;
    const instantFlag = isDiamond(places.height[row] as number) ? INSTANT : 0;
    for (let i = first; i < last; i++, n++) {
      const from = (boxes.startPs[i] as number) - originPs;
      const isInstant = isInstantBox(boxes, i);
      const lengthPs = isInstant && instantFlag ? roomPs(boxes, i, first, last) : boxes.durationPs[i];
      floats[4 * n] = Math.max(from, -reach);
      floats[4 * n + 1] = Math.min(from + (lengthPs as number), reach);
      floats[4 * n + 2] = y;
      marks[16 * n + 12] = boxes.style[i] as number;
      if (isInstant && instantFlag) hasInstants = true;
      marks[16 * n + 13] =
        ((boxes.nMerged[i] as number) > 1 ? MERGED : 0) |
        (isDim?.[i] ? DIM : 0) |
        (isInstant ? instantFlag : 0);
      marks[16 * n + 14] = places.height[row] as number;
    }
  }
  const rowTop = Float32Array.from(rows, (row) => places.y[row] as number);
  const rowBottom = Float32Array.from(
    rows,
    (row) => (places.y[row] as number) + (places.height[row] as number),
  );
  return {
    n,
    originPs,
    bytes,
    floats,
    marks,
    hasInstants,
    rowTop,
    rowBottom,
    rowFirst: Int32Array.from([...rowFirst, n]),
  };
}

/**
 * The instances from the first to the last row within [topPx, bottomPx], as [from, to): rows out of sight are
 * not drawn.
 */
export function instancesWithin(
  batch: InstanceBatch,
  topPx: number,
  bottomPx: number,
): readonly [number, number] {
  let from = batch.n;
  let to = 0;
  for (let row = 0; row < batch.rowTop.length; row++) {
    if ((batch.rowTop[row] as number) > bottomPx || (batch.rowBottom[row] as number) < topPx) continue;
    from = Math.min(from, batch.rowFirst[row] as number);
    to = Math.max(to, batch.rowFirst[row + 1] as number);
  }
  return [Math.min(from, to), to];
}

/**
 * The first instance of a row that can extend beyond `from` (from originPs): the last that starts before it,
 * or the row's first.
 */
export function firstInstanceFrom(batch: InstanceBatch, row: number, from: number): number {
  const first = batch.rowFirst[row] as number;
  let lo = first;
  let hi = batch.rowFirst[row + 1] as number;
  while (lo < hi) {
    const middle = (lo + hi) >>> 1;
    if ((batch.floats[4 * middle] as number) <= from) lo = middle + 1;
    else hi = middle;
  }
  return Math.max(first, lo - 1);
}

/** The first box of rows[lo, hi) that starts after timePs. */
export function firstAfter(startPs: Float64Array, lo: number, hi: number, timePs: number): number {
  let from = lo;
  let to = hi;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((startPs[middle] as number) <= timePs) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The instant of a row nearest to timePs and within reachPs of it: its diamond covers boxes; −1: none. */
function instantAt(
  boxes: Boxes,
  lo: number,
  hi: number,
  after: number,
  timePs: number,
  reachPs: number,
): number {
  let nearest = -1;
  let least = reachPs;
  for (let i = Math.max(lo, after - 2); i < Math.min(hi, after + 2); i++) {
    const gap = Math.abs((boxes.startPs[i] as number) - timePs);
    if (!isInstantBox(boxes, i) || gap > least) continue;
    if (gap > Math.max(roomPs(boxes, i, lo, hi), (LEAST_DIAMOND_PX / DIAMOND_PX) * reachPs)) continue;
    nearest = i;
    least = gap;
  }
  return nearest;
}

/**
 * The box of a row at timePs, or within slackPs of it (boxes are drawn at least a pixel wide); first an instant
 * within diamondPs; −1: none.
 */
export function boxAt(boxes: Boxes, row: number, timePs: number, slackPs: number, diamondPs = 0): number {
  const lo = boxes.rowFirst[row];
  const hi = boxes.rowFirst[row + 1];
  if (lo === undefined || hi === undefined) return -1;
  const after = firstAfter(boxes.startPs, lo, hi, timePs);
  const instant = diamondPs > 0 ? instantAt(boxes, lo, hi, after, timePs, diamondPs) : -1;
  if (instant >= 0) return instant;
  const before = after - 1;
  const gapBefore =
    before >= lo
      ? timePs - (boxes.startPs[before] as number) - (boxes.durationPs[before] as number)
      : Infinity;
  if (gapBefore <= 0) return before;
  const gapAfter = after < hi ? (boxes.startPs[after] as number) - timePs : Infinity;
  if (Math.min(gapBefore, gapAfter) > slackPs) return -1;
  return gapBefore <= gapAfter ? before : after;
}

/** The row at a height of the scrolled content; −1: none. */
export function rowAt(places: RowPlaces, y: number): number {
  for (let row = 0; row < places.y.length; row++) {
    const top = places.y[row] as number;
    if (y >= top && y < top + (places.height[row] as number)) return row;
  }
  return -1;
}
