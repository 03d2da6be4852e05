/** The tables `findings` and `causes` become rows, columns and sentences. Pure. */
import { readIfAny, type RowOf } from '../../api/declared';
import { OVERVIEW_PAGE } from '../../api/tables/overview_page';
import type { Payload, Table } from '../../api/types';
import { categoryToken } from '../../base/color';
import { format, scaleFor, SPACE, threeDigits, UNKNOWN } from '../../base/units';
import type { TableColumn, TableData } from '../../widgets/table/model';
import { tableData } from '../tool';

export interface Finding {
  cause: string;
  token: string;
  /** With `backticks` around names. */
  sentence: string;
  reason: string;
  share: number | null;
  gainLowPs: number | null;
  gainHighPs: number | null;
  fix: string;
  snippet: string;
  confidence: string;
  captureOption: string;
  evidence: string;
  /** Parameters of the trace viewer that show the evidence; null: it has no place in the trace. */
  place: Record<string, string> | null;
  /** The name of the cause's page in the documentation. */
  docs: string;
  meaning: string;
}

export interface CauseShare {
  title: string;
  token: string;
  timePs: number | null;
  fraction: number;
  tip: string;
}

/** Columns that are visible at first, in this order; the others are optional. */
export const FINDING_COLUMNS = ['cause', 'finding', 'share', 'gain_ps', 'confidence'];
const MORE_COLUMNS = [
  'culprit',
  'host',
  'time_ps',
  'gain_low_ps',
  'gain_high_ps',
  'reason',
  'fix',
  'evidence',
  'capture_option',
];
export const HIDDEN_COLUMNS: ReadonlySet<string> = new Set(MORE_COLUMNS);
/** Width of the mark of an expandable row and of the cause's dot. */
const MARKS_PX = 40;
/** Width of a range beyond that of one number. */
const RANGE_PX = 56;

const CONFIDENCE: Record<string, string> = {
  high: 'Events of the trace name the cause.',
  medium: 'Events of the trace fit the cause; the lost share of their time is an estimate.',
  low: 'Only the gap is known: nothing in the trace explains it.',
};

const { tables: TABLES } = OVERVIEW_PAGE.page;

function placeOf(row: RowOf<typeof TABLES.findings>): Finding['place'] {
  const { evidence_start_ps: start, evidence_end_ps: end, evidence_host: host } = row;
  return start === null || end === null || !host
    ? null
    : { hosts: host, start_ps: String(start), end_ps: String(end) };
}

/** Null if the run has no steps. */
export function findingsOf(payload: Payload): Finding[] {
  const rows = readIfAny(payload, TABLES.findings)?.all() ?? [];
  return rows.map((row) => ({
    cause: row.cause,
    token: categoryToken(row.color),
    sentence: row.finding,
    reason: row.reason,
    share: row.share,
    gainLowPs: row.gain_low_ps,
    gainHighPs: row.gain_high_ps,
    fix: row.fix,
    snippet: row.snippet,
    confidence: row.confidence,
    captureOption: row.capture_option,
    evidence: row.evidence,
    place: placeOf(row),
    docs: row.docs,
    meaning: row.meaning,
  }));
}

/** "9.90 to 19.9 ms": both ends in one unit. */
export function gainText(lowPs: number | null, highPs: number | null): string {
  if (lowPs === null || highPs === null) return UNKNOWN;
  if (lowPs <= 0) return `up to ${format(highPs, 'ps')}`;
  const { factor, label } = scaleFor(highPs, 'ps');
  const [low, high] = [threeDigits(lowPs / factor), threeDigits(highPs / factor)];
  return low === high ? format(highPs, 'ps') : `${low} to ${high}${SPACE}${label}`;
}

function bare(text: string): string {
  return text.replaceAll('`', '');
}

/** The sort key: the middle of the time that the fix may save. */
function gainOf({ gainLowPs, gainHighPs }: Finding): number | null {
  return gainLowPs === null || gainHighPs === null ? null : (gainLowPs + gainHighPs) / 2;
}

/** The table as the page shows it: names without backticks, and the gain as one column. */
export function findingsData(table: Table, findings: readonly Finding[]): TableData {
  const { columns, nRows } = tableData(table);
  const findingAt = (row: number): Finding | undefined => findings[row];
  const gain: TableColumn = {
    name: 'gain_ps',
    title: 'Gain if fully fixed',
    kind: 'number',
    unit: 'ps',
    extraPx: RANGE_PX,
    description:
      'How much shorter a step would be without this cost. It can exceed the time itself, because the cost slows ' +
      'the rest of the step too; a single change may recover less. Sorted by the middle of the range.',
    cell: (row) => (findingAt(row) ? gainOf(findingAt(row) as Finding) : null),
    tip: (row) => (findingAt(row)?.gainHighPs === null ? 'No model estimates the gain of a fix.' : ''),
  };
  const changes: Record<string, Partial<TableColumn>> = {
    cause: { extraPx: MARKS_PX, tip: (row) => findingAt(row)?.meaning ?? '' },
    finding: { cell: (row) => bare(findingAt(row)?.sentence ?? ''), tip: () => '' },
    confidence: { tip: (row) => CONFIDENCE[findingAt(row)?.confidence ?? ''] ?? '' },
  };
  const all = [...columns, gain].map((column) => {
    const { words, ...plain } = column;
    return { ...plain, ...(words && column.name !== 'finding' ? { words } : {}), ...changes[column.name] };
  });
  const ordered = [...FINDING_COLUMNS, ...MORE_COLUMNS].flatMap(
    (name) => all.find((column) => column.name === name) ?? [],
  );
  return { columns: ordered, nRows };
}

export function causesOf(payload: Payload): CauseShare[] {
  const rows = readIfAny(payload, TABLES.causes)?.all() ?? [];
  return rows.map(({ cause, color, time_ps, share, meaning }) => ({
    title: cause,
    token: categoryToken(color),
    timePs: time_ps,
    fraction: share ?? 0,
    tip: `${cause}: ${format(time_ps, 'ps')} per step, ${format(share, 'fraction')}${meaning ? `\n${meaning}` : ''}`,
  }));
}

const COMPUTE = 'Compute';
/** Share of the step: smaller costs are no findings. */
const LEAST_SHARE = 0.03;

/** The text if there are no findings. */
export function calmText(causes: readonly CauseShare[]): string {
  const most = causes.find(({ title }) => title !== COMPUTE);
  const least = format(LEAST_SHARE, 'fraction').replace('.00', '');
  if (!most || most.fraction < LEAST_SHARE)
    return `No cause other than computing takes ${least} or more of the step.`;
  return (
    'No function, operation or stage stands out. Apart from computing, most time goes into ' +
    `${most.title.toLowerCase()}: ${format(most.fraction, 'fraction')} of the step.`
  );
}

/** The row that the link says is open; the first is 1. -1: none. */
export function openRow(text: string | undefined, nRows: number): number {
  const row = /^\d+$/.test(text ?? '') ? Number(text) - 1 : -1;
  return row < nRows ? row : -1;
}

/** The purpose of the capture option, unless the advice mentions it already. */
export function captureText({ captureOption, fix }: Finding): string {
  return captureOption && !fix.includes(captureOption)
    ? `Capture with \`${captureOption}\` to see which function it is.`
    : '';
}
