/**
 * The line above a table: search, filters on and off, columns to show, number of rows, CSV of the visible
 * part.
 */
import type { VNode } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { saveText } from '../../base/clipboard';
import { plural } from '../../base/units';
import { PopupButton } from '../menu';
import { useHasSearchKey } from '../search_key';
import { constantOf, shownColumns, toCsv, type TableColumn, type TableData, type TableView } from './model';

export interface ToolbarProps {
  data: TableData;
  /** Those that are drawn: the shown ones that have room. */
  columns: readonly TableColumn[];
  view: TableView;
  rows: Int32Array;
  label: string;
  hasFilters: boolean;
  onFilters: () => void;
  onView: (view: TableView, how: 'push' | 'replace') => void;
}

/** What the columns say that say the same in every row. */
function sameThroughout({ columns, nRows }: TableData): Map<string, string> {
  const said = columns.flatMap((column): [string, string][] => {
    const text = constantOf(column, nRows);
    return text === undefined
      ? []
      : [[column.name, text === null ? 'unknown in all rows' : `${text} in all rows`]];
  });
  return new Map(said);
}

/** The hidden columns of texts that say one and the same, such as "Program: jit_f". */
function hiddenConstants({ columns, nRows }: TableData, hidden: ReadonlySet<string>): string[] {
  return columns.flatMap((column) => {
    if (column.kind !== 'text' || !column.isMain || !hidden.has(column.name)) return [];
    const text = constantOf(column, nRows);
    return text && text !== 'Unknown' ? [`${column.title}: ${text}`] : [];
  });
}

type ColumnListProps = Pick<ToolbarProps, 'data' | 'columns' | 'view' | 'onView'>;

function ColumnList({ data, columns, view, onView }: ColumnListProps): VNode {
  const drawn = new Set(columns.map(({ name }) => name));
  const hasRoom = drawn.size === shownColumns(data, view).length;
  const toggle = (name: string): void => {
    const hidden = new Set(data.columns.map((column) => column.name).filter((one) => !drawn.has(one)));
    if (!hidden.delete(name)) hidden.add(name);
    if (hidden.size === data.columns.length) return;
    onView({ ...view, hidden, ...(hasRoom ? {} : { isChosen: true }) }, 'push');
  };
  const nothing = useMemo(() => sameThroughout(data), [data]);
  return (
    <div class="column-list" role="group" aria-label="Columns to show">
      {data.columns.map((column) => (
        <label key={column.name}>
          <input type="checkbox" checked={drawn.has(column.name)} onChange={() => toggle(column.name)} />
          {column.title}
          {nothing.has(column.name) && <small class="muted">{nothing.get(column.name)}</small>}
          {!drawn.has(column.name) && !view.hidden.has(column.name) && <small class="muted">no room</small>}
        </label>
      ))}
    </div>
  );
}

export function Toolbar(props: ToolbarProps): VNode {
  const { data, columns, view, rows, label, hasFilters, onFilters, onView } = props;
  const field = useRef<HTMLInputElement>(null);
  const hasKey = useHasSearchKey(field);
  const nFilters = Object.values(view.filters).filter(Boolean).length;
  const count =
    rows.length === data.nRows
      ? plural(data.nRows, 'row')
      : `${rows.length.toLocaleString('en-US')} of ${plural(data.nRows, 'row')}`;
  const constants = useMemo(() => hiddenConstants(data, view.hidden), [data, view.hidden]);
  const save = (): void =>
    saveText(
      toCsv(shownColumns(data, view), rows),
      `${label.replace(/\W+/g, '_').toLowerCase()}.csv`,
      'text/csv',
    );
  return (
    <div class="table-tools">
      <input
        class="field"
        type="search"
        ref={field}
        data-key="search"
        placeholder={hasKey ? 'Search  /' : 'Search'}
        aria-label={`Search in ${label}`}
        value={view.query}
        onInput={(event) => onView({ ...view, query: event.currentTarget.value }, 'replace')}
      />
      <span class="count" role="status">
        {count}
      </span>
      {constants.length > 0 && (
        <span class="constants" data-tip={`The same in all rows\n${constants.join('\n')}`}>
          {constants.join(' · ')}
        </span>
      )}
      <div class="buttons">
        <button type="button" class="button small" aria-pressed={hasFilters} onClick={onFilters}>
          Filters{nFilters ? ` (${nFilters})` : ''}
        </button>
        <PopupButton
          small
          label={
            columns.length < data.columns.length
              ? `Columns (${columns.length} of ${data.columns.length})`
              : 'Columns'
          }
        >
          <ColumnList {...{ data, columns, view, onView }} />
        </PopupButton>
        <button
          type="button"
          class="button small"
          data-tip="The visible rows with exact values, including columns that have no room"
          onClick={save}
        >
          CSV
        </button>
      </div>
    </div>
  );
}
