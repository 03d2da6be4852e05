/** The parts of a step, the boxes of its picture, and the bar of an operation. Pure. */
import type { RowsOf } from '../../api/declared';
import { COMMUNICATION } from '../../api/tables/communication';
import { format } from '../../base/units';
import type { StepPart } from '../steps';

export const TABLES = COMMUNICATION.page.tables;
export const PICTURE = COMMUNICATION.step;
export type OpRows = RowsOf<typeof TABLES.ops>;
export type BoxRows = RowsOf<typeof PICTURE.tables.boxes>;

/** The layers of the chart of steps, from below; together they are the step. */
export const STEP_PARTS: readonly StepPart[] = [
  { column: 'compute_ps', category: 'Compute', color: 'compute' },
  { column: 'hidden_ps', category: 'Hidden', color: 'comm_hidden' },
  { column: 'partly_ps', category: 'Partly hidden', color: 'comm_partly' },
  { column: 'exposed_ps', category: 'Exposed', color: 'collective' },
  { column: 'other_ps', category: 'Other', color: 'idle' },
];

export interface Box {
  lane: number;
  /** `compute`, `hidden`, `partly`, `exposed`, or `total` for the exposed time of all operations. */
  kind: string;
  op: string;
  startPs: number;
  endPs: number;
}

export interface Picture {
  lanes: string[];
  boxes: Box[];
}

const COMPUTE = 'Compute';
const EXPOSED = 'Exposed';

/** Compute on top, then the lanes by number, the exposed time of all at the bottom. */
function byPlace(a: string, b: string): number {
  const place = (lane: string): number =>
    lane === COMPUTE ? -1 : lane === EXPOSED ? Infinity : Number(lane.replace(/\D/g, ''));
  return place(a) - place(b);
}

export function pictureOf(rows: BoxRows): Picture {
  const all = rows.all();
  const lanes = [...new Set(all.map(({ lane }) => lane))].sort(byPlace);
  const boxes = all.map(({ lane, kind, op, start_ps, duration_ps }) => ({
    lane: lanes.indexOf(lane),
    kind,
    op,
    startPs: start_ps ?? 0,
    endPs: (start_ps ?? 0) + (duration_ps ?? 0),
  }));
  return { lanes, boxes };
}

export interface Caption {
  box: Box;
  /** In the box, else to the right of it. */
  isInside: boolean;
}

/**
 * The names of operations: in their longest box if there is room, else to the right of their last box, before
 * the next one of the lane; else nowhere. `roomFor` a name, in ps; `endPs`: where the picture ends.
 */
export function captionsOf({ boxes }: Picture, roomFor: (op: string) => number, endPs: number): Caption[] {
  const lanes = new Map<number, Box[]>();
  for (const box of boxes)
    if (box.kind !== 'total') lanes.set(box.lane, [...(lanes.get(box.lane) ?? []), box]);
  return [...lanes.values()].flatMap((lane): Caption[] =>
    runsOf(lane).flatMap((run, i, runs): Caption[] => {
      if (!run[0]?.op) return []; // compute
      const longest = run.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a));
      const last = run[run.length - 1] as Box;
      const room = roomFor(last.op);
      if (lengthOf(longest) >= room) return [{ box: longest, isInside: true }];
      const limit = runs[i + 1]?.[0]?.startPs ?? endPs;
      return last.endPs + room <= limit ? [{ box: last, isInside: false }] : [];
    }),
  );
}

const lengthOf = ({ startPs, endPs }: Box): number => endPs - startPs;

export interface Amount {
  text: string;
  /** Where its middle is. */
  atPs: number;
}

/**
 * The lengths of the exposed stretches, each at the middle of its own: the longest first, as long as they
 * have room. `roomFor` a text, in ps; `endPs`: where the picture ends.
 */
export function amountsOf({ boxes }: Picture, roomFor: (text: string) => number, endPs: number): Amount[] {
  const placed: (Amount & { roomPs: number })[] = [];
  const longestFirst = boxes.filter(({ kind }) => kind === 'total').sort((a, b) => lengthOf(b) - lengthOf(a));
  for (const box of longestFirst) {
    const text = format(lengthOf(box), 'ps');
    const roomPs = roomFor(text);
    const atPs = Math.max(roomPs / 2, Math.min((box.startPs + box.endPs) / 2, endPs - roomPs / 2));
    if (placed.every((other) => Math.abs(other.atPs - atPs) >= (other.roomPs + roomPs) / 2))
      placed.push({ text, atPs, roomPs });
  }
  return placed.map(({ text, atPs }) => ({ text, atPs }));
}

/** The boxes of each run of an operation, which touch one another. */
function runsOf(lane: readonly Box[]): Box[][] {
  const runs: Box[][] = [];
  for (const box of [...lane].sort((a, b) => a.startPs - b.startPs)) {
    const former = runs[runs.length - 1];
    const before = former?.[former.length - 1];
    if (former && before?.op === box.op && box.startPs <= before.endPs) former.push(box);
    else runs.push([box]);
  }
  return runs;
}

/** Lengths of the parts of an operation's bar, as shares of the longest operation's. */
export interface Mix {
  hidden: number;
  exposed: number;
  waiting: number;
  /** The parts in words, for a tooltip. */
  text: string;
}

export function mixesOf(ops: OpRows): Mix[] {
  const rows = ops.all();
  const longest = Math.max(0, ...rows.map(({ total_ps }) => total_ps ?? 0)) || 1;
  return rows.map(({ hidden_ps, exposed_ps, wait_ps }) => {
    // What is hidden may be waiting, too: at least the rest of the waiting is exposed.
    const waiting = Math.min(Math.max((wait_ps ?? 0) - (hidden_ps ?? 0), 0), exposed_ps ?? 0);
    const parts: [string, number][] = [
      ['Hidden', hidden_ps ?? 0],
      ['Exposed', (exposed_ps ?? 0) - waiting],
      ['Waiting, exposed', waiting],
    ];
    return {
      hidden: (hidden_ps ?? 0) / longest,
      exposed: ((exposed_ps ?? 0) - waiting) / longest,
      waiting: waiting / longest,
      text: parts
        .filter(([, ps]) => ps > 0)
        .map(([name, ps]) => `${name}: ${format(ps, 'ps')}`)
        .join('\n'),
    };
  });
}

const KIND_WORDS: Readonly<Record<string, string>> = {
  compute: 'Compute',
  hidden: 'hidden',
  partly: 'partly hidden: this part is hidden',
  exposed: 'exposed',
  total: 'Exposed communication',
};

/** The tooltip of a box. */
export function boxText({ kind, op, startPs, endPs }: Box): string {
  const what = KIND_WORDS[kind] ?? kind;
  return `${op ? `${op}: ${what}` : what}\n${format(endPs - startPs, 'ps')}, from ${format(startPs, 'ps')}`;
}

/**
 * The query that finds an operation's events on the timeline: an instruction with its halves `-start` and
 * `-done`, PyTorch's collectives by their kernels, anything else by its name.
 */
export function queryOf(op: string): string {
  if (op.includes(' #')) return 'nccl';
  const instruction = /^([A-Za-z][\w-]*)((?:\.\w+)*)$/.exec(op);
  if (!instruction) return `name:"${op.replace(/[\\"]/g, '\\$&')}"`;
  const [, base = '', number = ''] = instruction;
  return `name~"^%?${base}(-start|-done)?${number.replaceAll('.', String.raw`\.`)}(\\s|$)"`;
}

/** The row that a parameter names; -1: none, so the server chooses. */
export function rowOf(text: string | undefined): number {
  const row = Number(text ?? -1);
  return Number.isInteger(row) && row >= 0 ? row : -1;
}
