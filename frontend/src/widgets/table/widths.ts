/**
 * The width of each column: measured from its title and all its cells, then fitted to the available room.
 * Numbers always have the room they need; texts share the rest. Fixed, so that columns do not shift while rows
 * scroll by.
 */
import { useLayoutEffect, useState } from 'preact/hooks';
import { cellLabel, largestFractions, totalText, type TableColumn, type TableData } from './model';

const PADDING_PX = 18;
const SAMPLE_ROWS = 200;
/** Measuring takes longer than counting characters: of the sample the longest texts are measured. */
const MEASURED = 3;
const MIN_PX = 48;
/** Texts are not shortened below this, or where a table must not scroll sideways, below a word. */
const LEGIBLE_TEXT_PX = 120;
const WORD_PX = 80;
/** Names, in the fixed-width font or in the first column of texts, say what a row is. */
const LEGIBLE_NAME_PX = 230;
/** Titles take two lines before texts become shorter than this. */
const EASY_TEXT_PX = 260;
/** A bar next to a fraction's number. */
const BAR_PX = 72;
const MIN_BAR_PX = 48;
/** Shorter bars cannot be told apart. */
const LEAST_DRAWN = 0.02;
const SORT_MARK = ' ▾';
const CHAR_PX = 8;

type Measure = (text: string, font: string) => number;

/** Measures text in the table's fonts; without a canvas, by the number of characters. */
function measurer(): Measure {
  const context = document.createElement('canvas').getContext?.('2d');
  if (!context) return (text) => text.length * CHAR_PX;
  return (text, font) => {
    if (context.font !== font) context.font = font;
    // The page's digits are all equally wide.
    return context.measureText(text.replace(/\d/g, '0')).width;
  };
}

export interface Fonts {
  title: string;
  cell: string;
  mono: string;
  total: string;
}

function tableFonts(): Fonts {
  const style = getComputedStyle(document.documentElement);
  const [sans, mono] = [
    style.getPropertyValue('--font') || 'sans-serif',
    style.getPropertyValue('--mono') || 'monospace',
  ];
  return {
    title: `500 12px ${sans}`,
    cell: `13px ${sans}`,
    mono: `12px ${mono}`,
    total: `600 13px ${sans}`,
  };
}

/** The widths of a column: with all there is to see, and with a title of two lines and shortened texts. */
export interface ColumnWidth {
  wide: number;
  narrow: number;
}

/**
 * The rows of a column of numbers whose texts may be longest: one for each magnitude, sign, and with or
 * without decimals, since these decide how long the text is.
 */
function rowsByLength(column: TableColumn, nRows: number): number[] {
  const rows = new Map<number, number>();
  for (let row = 0; row < nRows; row++) {
    const cell = column.cell(row);
    if (typeof cell !== 'number') continue;
    const magnitude = cell === 0 ? 0 : Math.floor(Math.log10(Math.abs(cell)) * 4) + 1;
    const key = magnitude * 4 + (Number.isInteger(cell) ? 2 : 0) + (cell < 0 ? 1 : 0);
    if (!rows.has(key)) rows.set(key, row);
  }
  return [...rows.values()];
}

/** The longest texts of a column, by characters: of all its numbers, of the texts of its first rows. */
function longestTexts(column: TableColumn, nRows: number): string[] {
  const texts = new Set<string>();
  const rows =
    column.kind === 'number'
      ? rowsByLength(column, nRows)
      : Array.from({ length: Math.min(nRows, SAMPLE_ROWS) }, (_, row) => row);
  for (const row of rows) texts.add(cellLabel(column, column.cell(row)));
  return [...texts].sort((a, b) => b.length - a.length).slice(0, MEASURED);
}

/** Whether the first rows of a column hold different texts. */
function differs(column: TableColumn, nRows: number): boolean {
  const first = nRows ? column.cell(0) : null;
  for (let row = 1; row < Math.min(nRows, SAMPLE_ROWS); row++) if (column.cell(row) !== first) return true;
  return false;
}

/** The width of a title on one line, and in the best two. */
function titleWidths(title: string, measure: (text: string) => number): ColumnWidth {
  const words = (title + SORT_MARK).split(' ');
  const wide = measure(words.join(' '));
  const halves = words.map((_, i) =>
    i === 0 || i === words.length - 1
      ? wide
      : Math.max(measure(words.slice(0, i).join(' ')), measure(words.slice(i).join(' '))),
  );
  return { wide, narrow: Math.min(...halves, wide) };
}

/** Whether the fractions of a column have bars: some are large enough to be seen on a scale of 100%. */
export function barColumns(data: TableData): ReadonlySet<string> {
  const largest = largestFractions(data);
  return new Set([...largest].filter(([, value]) => value >= LEAST_DRAWN).map(([name]) => name));
}

/** The widths at which no cell, title or total is cut, and the least ones that are legible. */
export function naturalWidths(
  data: TableData,
  mono: readonly string[] = [],
  totals: readonly string[] = [],
  fonts: Fonts = tableFonts(),
): Map<string, ColumnWidth> {
  const measure = measurer();
  const bars = barColumns(data);
  const allRows = Array.from({ length: data.nRows }, (_, row) => row);
  const firstText = data.columns.find((column) => column.kind === 'text' && differs(column, data.nRows));
  const widthsOf = (column: TableColumn): ColumnWidth => {
    const title = titleWidths(column.title, (text) => measure(text, fonts.title));
    const isMono = mono.includes(column.name);
    const texts = longestTexts(column, data.nRows);
    const font = isMono ? fonts.mono : fonts.cell;
    let cells = Math.max(0, ...texts.map((text) => measure(text, font)));
    if (totals.includes(column.name)) {
      const bold = [...texts, totalText(column, allRows)];
      cells = Math.max(cells, ...bold.map((text) => measure(text, fonts.total)));
    }
    const extra = PADDING_PX + (column.extraPx ?? 0);
    const [bar, leastBar] = bars.has(column.name) ? [BAR_PX, MIN_BAR_PX] : [0, 0];
    const least =
      column.kind === 'text'
        ? Math.min(cells, isMono || column === firstText ? LEGIBLE_NAME_PX : LEGIBLE_TEXT_PX)
        : cells;
    return {
      wide: Math.ceil(Math.max(MIN_PX, Math.max(title.wide, cells + bar) + extra)),
      narrow: Math.ceil(Math.max(MIN_PX, Math.max(title.narrow, least + leastBar) + extra)),
    };
  };
  return new Map(data.columns.map((column) => [column.name, widthsOf(column)]));
}

/** The height up to which all of `wide` are filled by `room`, none below its `narrow`. */
function filled(widths: readonly ColumnWidth[], room: number): number[] {
  const open = widths.map((_, i) => i);
  const result = widths.map(({ narrow }) => narrow);
  let left = room - result.reduce((sum, width) => sum + width, 0);
  while (left > 0.5 && open.length) {
    // The narrowest grow first, up to the next one or to their full width.
    open.sort((a, b) => (result[a] as number) - (result[b] as number));
    const level = result[open[0] as number] as number;
    const lowest = open.filter((i) => (result[i] as number) <= level + 0.5);
    const next = Math.min(
      ...lowest.map((i) => (widths[i] as ColumnWidth).wide),
      ...open.filter((i) => !lowest.includes(i)).map((i) => result[i] as number),
    );
    const step = Math.min(Math.max(0, next - level), left / lowest.length);
    for (const i of lowest) result[i] = (result[i] as number) + step;
    left -= step * lowest.length;
    for (const i of [...open])
      if ((result[i] as number) >= (widths[i] as ColumnWidth).wide - 0.5) open.splice(open.indexOf(i), 1);
  }
  return result.map(Math.floor);
}

const NO_WIDTH: ColumnWidth = { wide: MIN_PX, narrow: MIN_PX };

function sumOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0);
}

/**
 * The columns that have room without scrolling: the last ones are left out first, since columns stand in order
 * of their use; never the first one and those in `kept`.
 */
export function columnsWithRoom(
  columns: readonly TableColumn[],
  natural: ReadonlyMap<string, ColumnWidth>,
  roomPx: number,
  kept: ReadonlySet<string>,
): readonly TableColumn[] {
  if (!roomPx) return columns;
  const widthOf = ({ name }: TableColumn): number => (natural.get(name) ?? NO_WIDTH).narrow;
  let missing = sumOf(columns.map(widthOf)) - roomPx;
  const left = new Set<string>();
  for (let i = columns.length - 1; i > 0 && missing > 0; i--) {
    const column = columns[i] as TableColumn;
    if (kept.has(column.name)) continue;
    left.add(column.name);
    missing -= widthOf(column);
  }
  return left.size ? columns.filter(({ name }) => !left.has(name)) : columns;
}

/**
 * Fits the columns into the room. Spare room goes to texts. Where it is short, titles take two lines and long
 * texts are shortened, far if the table must not scroll (`mayShrink`); numbers keep their width.
 */
export function fitWidths(
  columns: readonly TableColumn[],
  natural: ReadonlyMap<string, ColumnWidth>,
  roomPx: number,
  mayShrink: boolean,
): number[] {
  const widths = columns.map((column) => natural.get(column.name) ?? NO_WIDTH);
  const wide = widths.map((width) => width.wide);
  const spare = roomPx - sumOf(wide);
  if (!roomPx || spare === 0) return wide;
  const isText = columns.map((column) => column.kind === 'text');
  if (spare > 0) {
    const growing = isText.some(Boolean) ? isText : isText.map(() => true);
    const sum = sumOf(wide.filter((_, i) => growing[i]));
    return wide.map((width, i) => (growing[i] ? Math.floor(width + (spare * width) / sum) : width));
  }
  const texts = widths
    .filter((_, i) => isText[i])
    .map(({ wide: full, narrow }) => ({
      wide: full,
      narrow: mayShrink ? Math.min(narrow, WORD_PX) : narrow,
    }));
  const easy = sumOf(texts.map(({ wide: full, narrow }) => Math.max(narrow, Math.min(full, EASY_TEXT_PX))));
  const others = (kind: keyof ColumnWidth): number =>
    sumOf(widths.filter((_, i) => !isText[i]).map((width) => width[kind]));
  const kind = others('wide') + easy <= roomPx ? 'wide' : 'narrow';
  const fitted = filled(texts, roomPx - others(kind));
  return widths.map((width, i) => (isText[i] ? (fitted.shift() as number) : width[kind]));
}

/** Fits a text into a width by `shorten`, which takes the number of characters. */
export function textFitter(
  fonts: Fonts = tableFonts(),
): (
  text: string,
  widthPx: number,
  isMono: boolean,
  shorten: (text: string, nChars: number) => string,
) => string {
  const measure = measurer();
  const fitted = new Map<string, string>();
  return (text, widthPx, isMono, shorten) => {
    const key = `${widthPx} ${text}`;
    const known = fitted.get(key);
    if (known !== undefined) return known;
    const font = isMono ? fonts.mono : fonts.cell;
    const room = widthPx - PADDING_PX;
    const natural = measure(text, font);
    let shown = text;
    let nChars = Math.floor((room / natural) * text.length);
    while (measure(shown, font) > room && nChars > 1) shown = shorten(text, nChars--);
    fitted.set(key, shown);
    return shown;
  };
}

/** The width available to an element, updated as it changes; 0 until it is known. */
export function useRoom(element: { current: HTMLElement | null }): number {
  const [roomPx, setRoom] = useState(0);
  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const read = (): void => setRoom(box.clientWidth);
    const watch = new ResizeObserver(read);
    watch.observe(box);
    read();
    return () => watch.disconnect();
  }, []);
  return roomPx;
}
