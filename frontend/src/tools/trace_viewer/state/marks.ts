/**
 * Marks: intervals and instants with a letter, a name and a note, and which two of them are compared. They
 * are kept in the link, and per run in the browser.
 */

import { signal } from '@preact/signals';
import { recall, remember } from '../../../base/storage';
import { markText, parseMark, type Marked } from '../drawing/marked';

/** An instant ends where it begins. */
export interface Mark extends Marked {
  readonly name: string;
  readonly note: string;
}

/** Two marks, by their places in the list. */
export interface Pair {
  readonly a: number;
  readonly b: number;
  readonly by: 'name' | 'track';
  /** The two are drawn one below the other. */
  readonly isBeside: boolean;
}

export const MOST_MARKS = 26;
export const MOST_NAME = 60;
export const MOST_NOTE = 300;
/** A link beyond this length is cut by some programs: notes are left out first, then the last marks. */
const MOST_LINK = 1800;
const MOST_KEPT = 12_000;
const MOST_RUNS = 30;
const STORAGE_KEY = 'tpuprof.trace_viewer.marks';

export function letterOf(index: number): string {
  return String.fromCharCode(65 + index);
}

export function isInstant({ startPs, endPs }: Marked): boolean {
  return endPs === startPs;
}

function isSame(a: Mark, b: Mark): boolean {
  return markText(a) === markText(b);
}

function encoded(mark: Mark, withNote: boolean): string {
  const place = isInstant(mark) ? String(Math.round(mark.startPs)) : markText(mark);
  const words = withNote && mark.note ? [mark.name, mark.note] : mark.name ? [mark.name] : [];
  return [place, ...words.map(encodeURIComponent)].join(',');
}

/** "START-END,NAME,NOTE;START,NAME", names and notes as in a URL; at most `most` characters. */
export function marksText(marks: readonly Mark[], most = MOST_LINK): string {
  for (const withNote of [true, false]) {
    const text = marks.map((mark) => encoded(mark, withNote)).join(';');
    if (text.length <= most) return text;
  }
  let text = '';
  for (const mark of marks) {
    const longer = [text, encoded(mark, false)].filter(Boolean).join(';');
    if (longer.length > most) break;
    text = longer;
  }
  return text;
}

function decoded(text: string | undefined, most: number): string {
  try {
    return decodeURIComponent(text ?? '').slice(0, most);
  } catch {
    return '';
  }
}

function parseOne(text: string): Mark | null {
  const [place = '', name, note] = text.split(',');
  const words = { name: decoded(name, MOST_NAME), note: decoded(note, MOST_NOTE) };
  if (/^\d{1,16}$/.test(place)) {
    const startPs = Number(place);
    return Number.isSafeInteger(startPs)
      ? { startPs, endPs: startPs, trackIds: null, depths: null, ...words }
      : null;
  }
  const marked = parseMark(place);
  return marked && { ...marked, ...words };
}

/** What is not a mark is left out. */
export function parseMarks(text: string | undefined): Mark[] {
  return (text ?? '')
    .slice(0, MOST_KEPT)
    .split(';')
    .flatMap((part) => parseOne(part) ?? [])
    .slice(0, MOST_MARKS);
}

/** "AB", "AB.track", "AB.beside", "AB.track.beside". */
export function pairText({ a, b, by, isBeside }: Pair): string {
  return `${letterOf(a)}${letterOf(b)}${by === 'track' ? '.track' : ''}${isBeside ? '.beside' : ''}`;
}

export function parsePair(text: string | undefined, nMarks: number): Pair | null {
  const match = /^([A-Z])([A-Z])(\.track)?(\.beside)?$/.exec(text ?? '');
  if (!match) return null;
  const [a, b] = [match[1], match[2]].map((letter = '') => letter.charCodeAt(0) - 65);
  if (a === undefined || b === undefined || a === b || a >= nMarks || b >= nMarks) return null;
  return { a, b, by: match[3] ? 'track' : 'name', isBeside: Boolean(match[4]) };
}

function keptRuns(): [string, string][] {
  const kept = recall(STORAGE_KEY);
  if (typeof kept !== 'object' || kept === null) return [];
  return Object.entries(kept).flatMap(([run, text]): [string, string][] =>
    typeof text === 'string' ? [[run, text]] : [],
  );
}

/** The marks of a run that this browser keeps. */
export function keptMarks(run: string): Mark[] {
  return parseMarks(keptRuns().find(([name]) => name === run)?.[1]);
}

/** Keeps a run's marks, and forgets those of the runs that were changed longest ago. */
export function keepMarks(run: string, marks: readonly Mark[]): void {
  const others = keptRuns().filter(([name]) => name !== run);
  const own: [string, string][] = marks.length > 0 ? [[run, marksText(marks, MOST_KEPT)]] : [];
  remember(STORAGE_KEY, Object.fromEntries([...others, ...own].slice(-MOST_RUNS)));
}

export class Marks {
  readonly list = signal<readonly Mark[]>([]);
  readonly pair = signal<Pair | null>(null);
  /** Whether the drawer shows them. */
  readonly isOpen = signal(false);
  /** The mark whose name is about to be typed. */
  readonly naming = signal<number | null>(null);

  /** The place of the mark, old or new; −1: there are as many as there are letters. */
  add(mark: Mark): number {
    const known = this.list.value.findIndex((each) => isSame(each, mark));
    if (known >= 0) return known;
    if (this.list.value.length >= MOST_MARKS) return -1;
    this.list.value = [
      ...this.list.value,
      { ...mark, name: mark.name.slice(0, MOST_NAME), note: mark.note.slice(0, MOST_NOTE) },
    ];
    return this.list.value.length - 1;
  }

  change(index: number, words: { readonly name?: string; readonly note?: string }): void {
    this.list.value = this.list.value.map((mark, i) =>
      i === index
        ? {
            ...mark,
            name: (words.name ?? mark.name).slice(0, MOST_NAME),
            note: (words.note ?? mark.note).slice(0, MOST_NOTE),
          }
        : mark,
    );
  }

  /** Those after it move up by one letter; a comparison with it ends. */
  remove(index: number): void {
    const { pair } = this;
    const after = (place: number): number => (place > index ? place - 1 : place);
    if (pair.value)
      pair.value =
        pair.value.a === index || pair.value.b === index
          ? null
          : { ...pair.value, a: after(pair.value.a), b: after(pair.value.b) };
    this.list.value = this.list.value.filter((_, i) => i !== index);
    this.naming.value = null;
  }

  /** Replaces everything, as a link says. */
  restore(marks: readonly Mark[], pair: Pair | null): void {
    if (marksText(marks) !== marksText(this.list.value)) this.list.value = marks;
    const [before, after] = [this.pair.value, pair];
    if ((before && pairText(before)) !== (after && pairText(after))) this.pair.value = pair;
    if (pair) this.isOpen.value = true;
  }

  shift(byPs: number): void {
    this.list.value = this.list.value.map((mark) => ({
      ...mark,
      startPs: mark.startPs + byPs,
      endPs: mark.endPs + byPs,
    }));
  }

  /** The places of the marks that have a length. */
  get intervals(): number[] {
    return this.list.value.flatMap((mark, index) => (isInstant(mark) ? [] : [index]));
  }

  /** Compares the last two intervals, or what was compared before; false: there are no two. */
  compare(change: Partial<Pair> = {}): boolean {
    this.isOpen.value = true;
    const [a, b] = this.intervals.slice(-2);
    const before = this.pair.value;
    if (!before && (a === undefined || b === undefined)) return false;
    this.pair.value = { ...(before ?? { a: a ?? 0, b: b ?? 0, by: 'name', isBeside: false }), ...change };
    return true;
  }
}
