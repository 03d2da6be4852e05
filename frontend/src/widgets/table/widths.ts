/**
 * The width of each column: measured from its title and first rows, then fitted to the available room. Fixed,
 * so that columns do not shift while rows scroll by.
 */
import { useLayoutEffect, useState } from 'preact/hooks';
import { cellText, type TableColumn, type TableData } from './model';

const PADDING_PX = 17;
const SAMPLE_ROWS = 200;
/** Measuring takes longer than counting characters: of the sample the longest texts are measured. */
const MEASURED = 3;
const MIN_PX = 48;
const MAX_TEXT_PX = 380;
const LEGIBLE_TEXT_PX = 220;
/** Texts as short as this shrink last. */
const SHORT_TEXT_PX = 80;
/** A bar next to a fraction's number. */
const BAR_PX = 84;
const MIN_BAR_PX = 36;
const SORT_MARK = ' ▾';
const CHAR_PX = 8;

/** Measures text in the table's fonts; without a canvas, by the number of characters. */
function measurer(): (text: string, font: string) => number {
  const context = document.createElement('canvas').getContext?.('2d');
  if (!context) return (text) => text.length * CHAR_PX;
  return (text, font) => {
    if (context.font !== font) context.font = font;
    return context.measureText(text).width;
  };
}

export interface Fonts {
  title: string;
  cell: string;
  mono: string;
}

function tableFonts(): Fonts {
  const style = getComputedStyle(document.documentElement);
  const [sans, mono] = [
    style.getPropertyValue('--font') || 'sans-serif',
    style.getPropertyValue('--mono') || 'monospace',
  ];
  return { title: `500 12px ${sans}`, cell: `13px ${sans}`, mono: `12px ${mono}` };
}

/** The longest texts of the first rows, by characters. */
function longestTexts(column: TableColumn, nRows: number): string[] {
  const texts = new Set<string>();
  for (let row = 0; row < nRows; row++) texts.add(cellText(column, column.cell(row)));
  return [...texts].sort((a, b) => b.length - a.length).slice(0, MEASURED);
}

/** The width at which nothing (of the first rows) is truncated, within reason. */
export function naturalWidths(
  data: TableData,
  mono: readonly string[] = [],
  fonts: Fonts = tableFonts(),
): Map<string, number> {
  const measure = measurer();
  const width = (column: TableColumn): number => {
    let widest = measure(column.title + SORT_MARK, fonts.title);
    const font = mono.includes(column.name) ? fonts.mono : fonts.cell;
    for (const text of longestTexts(column, Math.min(data.nRows, SAMPLE_ROWS)))
      widest = Math.max(widest, measure(text, font));
    const limited = column.kind === 'text' ? Math.min(MAX_TEXT_PX, widest) : widest;
    return Math.ceil(
      Math.max(
        MIN_PX,
        limited + PADDING_PX + (column.extraPx ?? 0) + (column.unit === 'fraction' ? BAR_PX : 0),
      ),
    );
  };
  return new Map(data.columns.map((column) => [column.name, width(column)]));
}

/** Adds `spare` (or removes it, if negative) to the widths, in proportion to each column's capacity. */
function share(
  columns: readonly TableColumn[],
  widths: readonly number[],
  spare: number,
  weight: (column: TableColumn, i: number) => number,
): number[] {
  const weights = columns.map(weight);
  const sum = weights.reduce((total, one) => total + one, 0);
  if (!sum) return widths.map((width) => width + Math.max(0, spare) / widths.length);
  return widths.map((width, i) =>
    Math.max(MIN_PX, Math.floor(width + (spare * (weights[i] as number)) / sum)),
  );
}

/**
 * Removes the excess from the long texts, as far as they stay legible: a table should scroll sideways only as
 * a last resort.
 */
function shortenTexts(columns: readonly TableColumn[], widths: readonly number[], spare: number): number[] {
  const excess = columns.map((column, i) =>
    column.kind === 'text' ? Math.max(0, (widths[i] as number) - LEGIBLE_TEXT_PX) : 0,
  );
  const sum = excess.reduce((total, one) => total + one, 0);
  const part = sum ? Math.min(1, -spare / sum) : 0;
  return widths.map((width, i) => Math.floor(width - part * (excess[i] as number)));
}

/**
 * Fits the columns into the room: spare room goes to texts; if it is short, long texts shrink, and if
 * `mayShrink` bars first and then all texts.
 */
export function fitWidths(
  columns: readonly TableColumn[],
  natural: ReadonlyMap<string, number>,
  roomPx: number,
  mayShrink: boolean,
): number[] {
  const widths = columns.map((column) => natural.get(column.name) ?? MIN_PX);
  const spare = roomPx - widths.reduce((sum, width) => sum + width, 0);
  if (!roomPx || spare === 0) return widths;
  if (spare > 0)
    return share(columns, widths, spare, (column, i) => (column.kind === 'text' ? (widths[i] as number) : 0));
  const nBars = columns.filter((column) => column.unit === 'fraction').length;
  const fromBars = Math.max(spare, -nBars * (BAR_PX - MIN_BAR_PX));
  if (!mayShrink) return shortenTexts(columns, widths, spare);
  const shorter = share(columns, widths, fromBars, (column) => (column.unit === 'fraction' ? 1 : 0));
  const legible = shortenTexts(columns, shorter, spare - fromBars);
  const missing = roomPx - legible.reduce((sum, width) => sum + width, 0);
  return missing >= 0
    ? legible
    : share(columns, legible, missing, (column, i) =>
        column.kind === 'text' ? Math.max(1, (legible[i] as number) - SHORT_TEXT_PX) : 0,
      );
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
