/**
 * The contents of a table: columns and a view (sort, search, filters, hidden columns) become the rows in
 * order. Pure.
 */
import { inNameOrder, nameOrder, wordsOf } from '../../base/search';
import { exactText, format, formatIn, UNKNOWN } from '../../base/units';
import { parseFilter, type Cell } from './filter';

export type { Cell } from './filter';

export interface TableColumn {
  name: string;
  title: string;
  unit: string;
  kind: 'text' | 'number' | 'bool';
  description?: string;
  formula?: string;
  /** The reason for its unknown cells. */
  unknown?: string;
  /** Room for anything drawn next to the text. */
  extraPx?: number;
  /** Among the columns that answer: if it is hidden because all rows say the same, that is said above. */
  isMain?: boolean;
  /** The text as it is shown, if it differs from the cell; search, sort and CSV use the cell. */
  label?(text: string): string;
  cell(row: number): Cell;
  /** The tooltip of a cell; absent: the exact value. */
  tip?(row: number): string;
  /**
   * For a column of texts, if known: the distinct texts, and each row's index among them (below 0: unknown).
   */
  words?: { readonly strings: readonly string[]; readonly codes: ArrayLike<number> };
}

export interface TableData {
  columns: readonly TableColumn[];
  nRows: number;
}

export interface TableView {
  sort: { column: string; descending: boolean } | null;
  query: string;
  /** The text typed above each column. */
  filters: Readonly<Record<string, string>>;
  hidden: ReadonlySet<string>;
  /** The user chose the columns: all of them are shown, even where the table must scroll sideways. */
  isChosen?: boolean;
}

export const PLAIN_VIEW: TableView = { sort: null, query: '', filters: {}, hidden: new Set() };

/**
 * Reads a view from URL parameters `sort`, `q`, `hide` and `f.<column>`; `initial` supplies the missing ones.
 */
export function parseView(
  params: Readonly<Record<string, string>>,
  initial: TableView = PLAIN_VIEW,
): TableView {
  const sort = params['sort'];
  const filters: Record<string, string> = {};
  for (const [name, text] of Object.entries(params)) if (name.startsWith('f.')) filters[name.slice(2)] = text;
  return {
    sort:
      sort === undefined
        ? initial.sort
        : sort === 'none'
          ? null
          : { column: sort.replace(/^-/, ''), descending: sort.startsWith('-') },
    query: params['q'] ?? initial.query,
    filters: Object.keys(filters).length ? filters : initial.filters,
    hidden:
      params['hide'] === undefined
        ? initial.hidden
        : new Set(params['hide'].split(',').filter((name) => name && name !== 'none')),
    ...(params['hide'] === undefined ? {} : { isChosen: true }),
  };
}

function sortText(sort: TableView['sort']): string {
  return sort ? (sort.descending ? '-' : '') + sort.column : 'none';
}

function hideText(hidden: ReadonlySet<string>): string {
  return [...hidden].sort().join(',') || 'none';
}

/**
 * The change of the URL parameters that leads from view to view; values equal to `initial` take no place in
 * the URL.
 */
export function viewChange(
  from: TableView,
  to: TableView,
  initial: TableView = PLAIN_VIEW,
): Record<string, string | undefined> {
  const change: Record<string, string | undefined> = {
    sort: sortText(to.sort) === sortText(initial.sort) ? undefined : sortText(to.sort),
    q: to.query || undefined,
    hide: to.isChosen || hideText(to.hidden) !== hideText(initial.hidden) ? hideText(to.hidden) : undefined,
  };
  for (const name of Object.keys(from.filters)) change[`f.${name}`] = undefined;
  for (const [name, text] of Object.entries(to.filters)) change[`f.${name}`] = text || undefined;
  return change;
}

export function shownColumns(data: TableData, view: TableView): TableColumn[] {
  return data.columns.filter((column) => !view.hidden.has(column.name));
}

function wordKeys({ strings, codes }: NonNullable<TableColumn['words']>, nRows: number): Float64Array {
  const ranks = new Float64Array(strings.length);
  nameOrder(strings).forEach((code, rank) => {
    ranks[code] = rank;
  });
  return Float64Array.from({ length: nRows }, (_, row) => ranks[codes[row] ?? -1] ?? Number.NaN);
}

/**
 * Per row a number that sorts as its cell does; NaN: unknown. Texts are ranked once per distinct text, not
 * compared per row.
 */
function sortKeys(column: TableColumn, nRows: number): Float64Array {
  if (column.words) return wordKeys(column.words, nRows);
  const keys = new Float64Array(nRows).fill(Number.NaN);
  const rank = new Map<string, number>();
  if (column.kind === 'text') {
    for (let row = 0; row < nRows; row++) {
      const cell = column.cell(row);
      if (typeof cell === 'string') rank.set(cell, 0);
    }
    inNameOrder(rank.keys()).forEach((text, place) => rank.set(text, place));
  }
  for (let row = 0; row < nRows; row++) {
    const cell = column.cell(row);
    if (cell !== null) keys[row] = typeof cell === 'string' ? (rank.get(cell) ?? Number.NaN) : Number(cell);
  }
  return keys;
}

/** Sorts in place; equal rows keep their order, unknown ones come last in both directions. */
function sortRows(rows: Int32Array, keys: Float64Array, descending: boolean): Int32Array {
  const sign = descending ? -1 : 1;
  return rows.sort((a, b) => {
    const left = keys[a] as number;
    const right = keys[b] as number;
    if (left < right) return -sign;
    if (left > right) return sign;
    if (left === right) return a - b;
    return Number(Number.isNaN(left)) - Number(Number.isNaN(right)) || a - b;
  });
}

/**
 * For each row the text that a search examines, in lower case. A word has no line break in it, so it lies
 * within one of the texts.
 */
function searchTexts(data: TableData): string[] {
  const texts = data.columns.filter((column) => column.kind === 'text');
  return Array.from({ length: data.nRows }, (_, row) =>
    texts
      .map((column) => column.cell(row) ?? '')
      .join('\n')
      .toLowerCase(),
  );
}

function testsOf(
  data: TableData,
  view: TableView,
  searched: () => readonly string[],
): ((row: number) => boolean)[] {
  const tests: ((row: number) => boolean)[] = [];
  for (const column of data.columns) {
    const text = view.filters[column.name];
    const test = text ? parseFilter(text, column.kind, column.unit) : null;
    if (test) tests.push((row) => test(column.cell(row)));
  }
  const words = wordsOf(view.query);
  const texts = words.length ? searched() : [];
  for (const word of words) tests.push((row) => texts[row]?.includes(word) ?? false);
  return tests;
}

type RowFinder = (view: TableView) => Int32Array;

/** Data derived once for sorting and searching. */
interface Prepared {
  keys(column: TableColumn): Float64Array;
  texts(): readonly string[];
}

const prepared = new WeakMap<TableData, Prepared>();

function preparedOf(data: TableData): Prepared {
  const cached = prepared.get(data);
  if (cached) return cached;
  const keysOf = new Map<string, Float64Array>();
  let texts: string[] | null = null;
  const fresh: Prepared = {
    keys: (column) => {
      const keys = keysOf.get(column.name) ?? sortKeys(column, data.nRows);
      keysOf.set(column.name, keys);
      return keys;
    },
    texts: () => (texts ??= searchTexts(data)),
  };
  prepared.set(data, fresh);
  return fresh;
}

const MANY_ROWS = 1000;

/**
 * Steps that precompute what the first search and the first sorts of many rows would wait for; few rows need
 * none.
 */
export function preparations(data: TableData): (() => void)[] {
  if (data.nRows < MANY_ROWS) return [];
  const { keys, texts } = preparedOf(data);
  return [
    () => void texts(),
    ...data.columns.filter(({ kind }) => kind === 'text').map((column) => () => void keys(column)),
  ];
}

/**
 * Makes the function that returns the rows of a view in order. Its caches serve all finders of the same data.
 */
export function rowFinder(data: TableData): RowFinder {
  const all = Int32Array.from({ length: data.nRows }, (_, row) => row);
  const { keys, texts } = preparedOf(data);
  return (view) => {
    const tests = testsOf(data, view, texts);
    const rows = tests.length ? all.filter((row) => tests.every((test) => test(row))) : all.slice();
    const column = data.columns.find((candidate) => candidate.name === view.sort?.column);
    return view.sort && column ? sortRows(rows, keys(column), view.sort.descending) : rows;
  };
}

export function cellText(column: TableColumn, cell: Cell): string {
  if (cell === null) return UNKNOWN;
  if (typeof cell === 'number') return format(cell, column.unit);
  return typeof cell === 'boolean' ? (cell ? 'Yes' : 'No') : cell;
}

/** The cell's text as shown where there is room. */
export function cellLabel(column: TableColumn, cell: Cell): string {
  const text = cellText(column, cell);
  return column.label && cell !== null ? column.label(text) : text;
}

/** The cell's complete value: for the tooltip and the clipboard. */
export function cellExact(column: TableColumn, cell: Cell): string {
  return typeof cell === 'number' ? exactText(cell, column.unit) : cellText(column, cell);
}

/** Sums over rows; null if nothing is known. */
export function totalOf(column: TableColumn, rows: ArrayLike<number>): number | null {
  let sum = 0;
  let isKnown = false;
  for (let i = 0; i < rows.length; i++) {
    const cell = column.cell(rows[i] as number);
    if (typeof cell !== 'number') continue;
    sum += cell;
    isKnown = true;
  }
  return isKnown ? sum : null;
}

/** From here on times are in minutes. */
const MINUTES_PS = 120e12;

/**
 * A column's sum over rows as text; empty if nothing is known. Minutes and hours are in the unit of the
 * largest cell, so that they can be compared with it.
 */
export function totalText(column: TableColumn, rows: ArrayLike<number>): string {
  const total = totalOf(column, rows);
  if (total === null) return '';
  let largest = 0;
  for (let i = 0; i < rows.length; i++) {
    const cell = column.cell(rows[i] as number);
    if (typeof cell === 'number') largest = Math.max(largest, Math.abs(cell));
  }
  return column.unit === 'ps' && Math.abs(total) >= MINUTES_PS
    ? formatIn(total, largest, column.unit)
    : format(total, column.unit);
}

/** The largest value of each column of fractions. */
export function largestFractions(data: TableData): Map<string, number> {
  const largest = new Map<string, number>();
  for (const column of data.columns) {
    if (column.unit !== 'fraction') continue;
    for (let row = 0; row < data.nRows; row++)
      largest.set(column.name, Math.max(largest.get(column.name) ?? 0, Number(column.cell(row) ?? 0)));
  }
  return largest;
}

/** What a column says in every row: a text, nothing (null), or undefined if rows differ or there is only one. */
export function constantOf(column: TableColumn, nRows: number): string | null | undefined {
  if (nRows < 2) return undefined;
  const first = column.cell(0);
  for (let row = 1; row < nRows; row++) if (column.cell(row) !== first) return undefined;
  return first === null ? null : cellText(column, first);
}

/** The distinct texts of a column, if few, for a list to choose from; null: too many. */
export function choicesOf(column: TableColumn, nRows: number, limit = 12): string[] | null {
  const texts = new Set<string>();
  for (let row = 0; row < nRows; row++) {
    const cell = column.cell(row);
    if (typeof cell === 'string') texts.add(cell);
    if (texts.size > limit) return null;
  }
  return texts.size > 1 ? inNameOrder(texts) : null;
}

function csvField(cell: Cell): string {
  const text = cell === null ? '' : String(cell);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The visible rows and columns, with exact values in the columns' own units. */
export function toCsv(columns: readonly TableColumn[], rows: ArrayLike<number>): string {
  const lines = [columns.map((column) => csvField(column.name)).join(',')];
  for (let i = 0; i < rows.length; i++)
    lines.push(columns.map((column) => csvField(column.cell(rows[i] as number))).join(','));
  return `${lines.join('\r\n')}\r\n`;
}
