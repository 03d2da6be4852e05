/**
 * A table of up to some 100,000 rows: sorts, searches, filters, hides columns; draws only the rows on screen;
 * all by keyboard.
 */
import { Fragment, type ComponentChildren, type VNode } from 'preact';
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { copyText } from '../../base/clipboard';
import { whenIdle } from '../../base/rest';
import { whyUnknown } from '../definition';
import { Header } from './header';
import {
  cellExact,
  cellLabel,
  PLAIN_VIEW,
  preparations,
  rowFinder,
  shownColumns,
  totalOf,
  totalText,
  type Cell,
  type TableColumn,
  type TableData,
  type TableView,
} from './model';
import { ROW_PX, Space, useKeptLines, useRows, type RowRange } from './rows';
import './style.css';
import { Toolbar } from './toolbar';
import { shortener, type Shorten } from './shortening';
import { barColumns, columnsWithRoom, fitWidths, naturalWidths, textFitter, useRoom } from './widths';

/** Up to this many rows all are drawn and the page scrolls, not the table. */
const ROWS_IN_FULL = 40;
/** Of these rows the names are compared, where a column does not list its distinct ones. */
const NAMED_ROWS = 2000;

export interface TableProps {
  data: TableData;
  label: string;
  view?: TableView;
  /** Absent: the table keeps its view itself, starting with `view`. */
  onView?: (view: TableView, how: 'push' | 'replace') => void;
  /** Columns whose sum over the visible rows is shown below. */
  totals?: readonly string[];
  /** Columns of source names: in the fixed-width font. */
  mono?: readonly string[];
  /** Columns of sentences: never shortened in the middle. */
  prose?: readonly string[];
  /** The color of the bars of fractions, for the whole table or by row and column. */
  barToken?: string | ((row: number, column: TableColumn) => string);
  /** Custom content for a cell, of its text as shortened to fit and in full; undefined: the default. */
  render?: (column: TableColumn, row: number, text: string, full: string) => ComponentChildren | undefined;
  hasToolbar?: boolean;
  /** A click on a row, or Enter on one of its cells, chooses it. */
  onRow?: (row: number) => void;
  /** The row that is chosen. */
  chosenRow?: number | undefined;
  /** The expanded part of the chosen row, drawn below it. For tables of few rows. */
  detail?: (row: number) => ComponentChildren;
  /** Up to this many rows the page scrolls, not the table; default 40. */
  rowsInFull?: number;
  maxHeight?: string;
}

/** A full bar is 100%. It is the background of one element: a screen has hundreds of them. */
function Share({ fraction, text, token }: { fraction: number; text: string; token: string }): VNode {
  return (
    <div
      class="share"
      style={{ '--part': `${Math.min(1, Math.max(0, fraction))}`, '--bar': `var(${token})` }}
    >
      {text}
    </div>
  );
}

function cellContent(
  props: TableProps,
  bars: ReadonlySet<string>,
  column: TableColumn,
  row: number,
  cell: Cell,
  text: string,
): ComponentChildren {
  const custom = props.render?.(column, row, text, cellLabel(column, cell));
  if (custom !== undefined) return custom;
  if (!bars.has(column.name) || typeof cell !== 'number') return text;
  const token =
    typeof props.barToken === 'function' ? props.barToken(row, column) : (props.barToken ?? '--c-compute');
  return <Share fraction={cell} text={text} token={token} />;
}

/** The distinct texts of a column, of its first rows where it does not list them. */
function* namesOf(column: TableColumn, nRows: number): Iterable<string> {
  if (column.words && !column.label) {
    yield* column.words.strings;
    return;
  }
  const seen = new Set<string>();
  for (let row = 0; row < Math.min(nRows, NAMED_ROWS); row++) {
    const text = cellLabel(column, column.cell(row));
    if (!seen.has(text)) yield text;
    seen.add(text);
  }
}

type Fit = (column: TableColumn, text: string) => string;

/** Fits the texts of cells into their columns' widths: shortened in the middle, so that rows still differ. */
function useFit(
  { data, mono, prose }: TableProps,
  columns: readonly TableColumn[],
  widths: readonly number[],
  roomPx: number,
): Fit {
  const shorteners = useMemo(() => new Map<string, Shorten>(), [data]);
  const fitter = useMemo(() => textFitter(), [data]);
  const byName = new Map(columns.map((column, i) => [column.name, widths[i] as number]));
  return (column, text) => {
    if (column.kind !== 'text' || !roomPx || prose?.includes(column.name)) return text;
    const shorten: Shorten = (whole, nChars) => {
      const known = shorteners.get(column.name) ?? shortener(namesOf(column, data.nRows));
      shorteners.set(column.name, known);
      return known(whole, nChars);
    };
    const room = (byName.get(column.name) ?? 0) - (column.extraPx ?? 0);
    return fitter(text, room, mono?.includes(column.name) ?? false, shorten);
  };
}

function cellClass(props: TableProps, column: TableColumn, cell: Cell, isActive: boolean): string {
  const names = [
    column.kind === 'number' ? 'n' : '',
    cell === null ? 'unknown' : '',
    isActive ? 'active' : '',
    props.mono?.includes(column.name) ? 'mono' : '',
  ];
  return names.filter(Boolean).join(' ');
}

interface Active {
  row: number;
  column: number;
}

interface BodyProps {
  props: TableProps;
  /** The columns of fractions that have bars. */
  bars: ReadonlySet<string>;
  fit: Fit;
  widths: readonly number[];
  columns: readonly TableColumn[];
  rows: Int32Array;
  range: RowRange;
  active: Active;
  id: string;
  roomPx: number;
}

function Opened({
  nColumns,
  roomPx,
  children,
}: {
  nColumns: number;
  roomPx: number;
  children: ComponentChildren;
}): VNode {
  return (
    <tr class="opened">
      <td colSpan={nColumns}>
        <div style={roomPx ? { width: `${roomPx}px` } : {}}>{children}</div>
      </td>
    </tr>
  );
}

function Body({ props, bars, fit, widths, columns, rows, range, active, id, roomPx }: BodyProps): VNode {
  const activeAt = (index: number): number => (active.row === index ? active.column : -1);
  const isOpen = (row: number): boolean => Boolean(props.detail) && row === props.chosenRow;
  const line = (index: number, row: number): VNode => (
    <tr
      key={index}
      aria-rowindex={index + 2}
      aria-selected={props.onRow ? row === props.chosenRow : undefined}
      data-at={index}
      class={props.onRow ? 'to-choose' : undefined}
      onClick={props.onRow ? () => props.onRow?.(row) : undefined}
    >
      {columns.map((column, columnIndex) => {
        const cell = column.cell(row);
        const isActive = activeAt(index) === columnIndex;
        const full = cellLabel(column, cell);
        const text = fit(column, full);
        return (
          <td
            key={column.name}
            aria-description={text === full ? undefined : full}
            id={isActive ? `${id}-active` : undefined}
            data-column={columnIndex}
            data-tip={
              cell === null
                ? whyUnknown(column.unknown)
                : column.tip
                  ? column.tip(row) || undefined
                  : cellExact(column, cell)
            }
            class={cellClass(props, column, cell, isActive)}
          >
            {cellContent(props, bars, column, row, cell, text)}
          </td>
        );
      })}
    </tr>
  );
  const rowAt = (index: number): number => rows[index] as number;
  const withDetail = (index: number): VNode => (
    <Fragment key={index}>
      {line(index, rowAt(index))}
      {isOpen(rowAt(index)) && (
        <Opened nColumns={columns.length} roomPx={roomPx}>
          {props.detail?.(rowAt(index))}
        </Opened>
      )}
    </Fragment>
  );
  const draw = props.detail ? withDetail : (index: number): VNode => line(index, rowAt(index));
  const lines = useKeptLines([props, columns, bars, widths.join(), props.detail && roomPx])(
    range,
    rows.length,
    (index) => `${rowAt(index)} ${activeAt(index)}`,
    draw,
  );
  return (
    <tbody>
      <Space nRows={range.first} nColumns={columns.length} />
      {lines}
      <Space nRows={range.total - range.last} nColumns={columns.length} />
    </tbody>
  );
}

function Totals({
  columns,
  rows,
  names,
}: {
  columns: readonly TableColumn[];
  rows: Int32Array;
  names: readonly string[];
}): VNode {
  return (
    <tfoot>
      <tr>
        {columns.map((column, columnIndex) => {
          const total = names.includes(column.name) ? totalOf(column, rows) : null;
          const text = total === null ? '' : totalText(column, rows);
          return (
            <td
              key={column.name}
              class={column.kind === 'number' ? 'n' : ''}
              data-tip={total === null ? undefined : cellExact(column, total)}
            >
              {columnIndex === 0 && !text ? 'Total' : text}
            </td>
          );
        })}
      </tr>
    </tfoot>
  );
}

function moved(active: Active, key: string, page: number): Active | null {
  const { row, column } = active;
  const moves: Record<string, Active> = {
    ArrowDown: { row: row + 1, column },
    ArrowUp: { row: row - 1, column },
    ArrowRight: { row, column: column + 1 },
    ArrowLeft: { row, column: column - 1 },
    PageDown: { row: row + page, column },
    PageUp: { row: row - page, column },
    Home: { row: 0, column },
    End: { row: Number.MAX_SAFE_INTEGER, column },
  };
  return moves[key] ?? null;
}

function clampActive(to: Active, nRows: number, nColumns: number): Active {
  return {
    row: Math.max(0, Math.min(nRows - 1, to.row)),
    column: Math.max(0, Math.min(nColumns - 1, to.column)),
  };
}

function useActive(
  rows: Int32Array,
  columns: readonly TableColumn[],
  reveal: (row: number) => void,
  choose?: (row: number) => void,
): { active: Active; onKey: (event: KeyboardEvent) => void; onClick: (event: MouseEvent) => void } {
  const [active, setActive] = useState<Active>({ row: 0, column: 0 });
  const onKey = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    if ((event.ctrlKey || event.metaKey) && event.key === 'c' && !window.getSelection()?.toString()) {
      const column = columns[active.column];
      const cell = column?.cell(rows[active.row] ?? -1);
      if (column && cell !== undefined) void copyText(cell === null ? '' : String(cell));
      return;
    }
    const row = rows[active.row];
    if (event.key === 'Enter' && choose && row !== undefined) {
      event.preventDefault();
      choose(row);
      return;
    }
    const to = event.ctrlKey || event.metaKey || event.altKey ? null : moved(active, event.key, 15);
    if (!to) return;
    event.preventDefault();
    const next = clampActive(to, rows.length, columns.length);
    setActive(next);
    reveal(next.row);
  };
  const onClick = (event: MouseEvent): void => {
    const cell =
      event.target instanceof Element ? event.target.closest<HTMLElement>('td[data-column]') : null;
    if (cell)
      setActive({ row: Number(cell.parentElement?.dataset['at']), column: Number(cell.dataset['column']) });
  };
  return { active, onKey, onClick };
}

function useView({
  view: given,
  onView,
}: TableProps): [TableView, (view: TableView, how: 'push' | 'replace') => void] {
  const [own, setOwn] = useState<TableView>(given ?? PLAIN_VIEW);
  return onView ? [given ?? PLAIN_VIEW, onView] : [own, setOwn];
}

export function Table(props: TableProps): VNode {
  const {
    data,
    label,
    totals,
    mono,
    hasToolbar = true,
    rowsInFull = ROWS_IN_FULL,
    maxHeight = 'min(72vh, 760px)',
  } = props;
  const [view, setView] = useView(props);
  const [hasFilters, setFilters] = useState(Object.values(view.filters).some(Boolean));
  const find = useMemo(() => rowFinder(data), [data]);
  useEffect(() => whenIdle(preparations(data)), [data]);
  const rows = useMemo(() => find(view), [find, view.sort, view.query, view.filters]);
  const scroll = useRef<HTMLDivElement>(null);
  const roomPx = useRoom(scroll);
  const bars = useMemo(() => barColumns(data), [data]);
  const natural = useMemo(() => naturalWidths(data, mono, totals), [data]);
  const columns = useMemo(() => {
    const chosen = shownColumns(data, view);
    if (!hasToolbar || view.isChosen) return chosen;
    const asked = Object.keys(view.filters).filter((name) => view.filters[name]);
    return columnsWithRoom(chosen, natural, roomPx, new Set([...asked, view.sort?.column ?? '']));
  }, [data, natural, roomPx, hasToolbar, view.hidden, view.isChosen, view.filters, view.sort]);
  const range = useRows(scroll, rows.length, rowsInFull);
  const { active, onKey, onClick } = useActive(rows, columns, range.reveal, props.onRow);
  const id = useId();
  useEffect(() => scroll.current?.scrollTo({ top: 0 }), [view.sort, view.query, view.filters]);
  const widths = fitWidths(columns, natural, roomPx, !hasToolbar);
  const fit = useFit(props, columns, widths, roomPx);
  // Independent of scrolling.
  const header = useMemo(
    () => <Header {...{ data, columns, view, hasFilters, onView: setView }} />,
    [props, data, columns, view, hasFilters],
  );
  const foot = useMemo(
    () => totals && rows.length > 0 && <Totals columns={columns} rows={rows} names={totals} />,
    [columns, rows, totals],
  );
  const totalPx = widths.reduce((sum, width) => sum + width, 0);
  return (
    <div class="table-box">
      {hasToolbar && (
        <Toolbar
          {...{ data, columns, view, rows, label, hasFilters, onView: setView }}
          onFilters={() => setFilters(!hasFilters)}
        />
      )}
      <div
        class="table-scroll"
        ref={scroll}
        style={
          rows.length > rowsInFull ? { height: `min(${(rows.length + 3) * ROW_PX}px, ${maxHeight})` } : {}
        }
      >
        <table
          class="grid"
          role="grid"
          tabIndex={0}
          aria-label={label}
          aria-rowcount={rows.length + 1}
          aria-colcount={columns.length}
          aria-activedescendant={`${id}-active`}
          style={{ width: `${totalPx}px` }}
          onKeyDown={onKey}
          onClick={onClick}
        >
          <colgroup>
            {columns.map((column, i) => (
              <col key={column.name} style={{ width: `${widths[i] ?? 0}px` }} />
            ))}
          </colgroup>
          {header}
          <Body {...{ props, bars, fit, widths, columns, rows, range, active, id, roomPx }} />
          {foot}
        </table>
      </div>
      {!rows.length && (
        <div class="table-empty">
          {data.nRows ? 'No row matches the search and the filters.' : 'No rows.'}
          {data.nRows > 0 && (
            <button
              type="button"
              class="button small"
              onClick={() => setView({ ...view, query: '', filters: {} }, 'push')}
            >
              Show all
            </button>
          )}
        </div>
      )}
    </div>
  );
}
