/** The head of a table: titles that sort, and below them, if switched on, a filter for each column. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { tipOf } from '../definition';
import { parseFilter } from './filter';
import { choicesOf, type TableColumn, type TableData, type TableView } from './model';

export interface HeaderProps {
  data: TableData;
  columns: readonly TableColumn[];
  view: TableView;
  hasFilters: boolean;
  onView: (view: TableView, how: 'push' | 'replace') => void;
}

/** A column's next sort: numbers start with the largest, texts with A; the third click removes the sort. */
function nextSort(view: TableView, column: TableColumn): TableView['sort'] {
  const firstDescending = column.kind !== 'text';
  if (view.sort?.column !== column.name) return { column: column.name, descending: firstDescending };
  return view.sort.descending === firstDescending
    ? { column: column.name, descending: !firstDescending }
    : null;
}

function FilterField({
  column,
  view,
  nRows,
  onView,
}: { column: TableColumn; nRows: number } & Pick<HeaderProps, 'view' | 'onView'>): VNode {
  const text = view.filters[column.name] ?? '';
  const set = (value: string, how: 'push' | 'replace'): void =>
    onView({ ...view, filters: { ...view.filters, [column.name]: value } }, how);
  const choices = useMemo(
    () => (column.kind === 'bool' ? ['yes', 'no'] : column.kind === 'text' ? choicesOf(column, nRows) : null),
    [column, nRows],
  );
  const label = `Filter ${column.title}`;
  if (choices) {
    const values = column.kind === 'bool' ? choices : choices.map((choice) => `=${choice}`);
    return (
      <select
        class="field"
        aria-label={label}
        value={text}
        onChange={(event) => set(event.currentTarget.value, 'push')}
      >
        <option value="">all</option>
        {!values.includes(text) && text && <option value={text}>{text}</option>}
        {choices.map((choice, i) => (
          <option key={choice} value={values[i]}>
            {choice}
          </option>
        ))}
      </select>
    );
  }
  const example = { ps: '> 1 ms', fraction: '> 1%', bytes: '> 1 MiB' }[column.unit] ?? '> 10';
  return (
    <input
      class="field"
      aria-label={label}
      aria-invalid={parseFilter(text, column.kind, column.unit) === null}
      placeholder={column.kind === 'number' ? example : 'contains'}
      value={text}
      onInput={(event) => set(event.currentTarget.value, 'replace')}
    />
  );
}

export function Header({ data, columns, view, hasFilters, onView }: HeaderProps): VNode {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((column) => {
          const isSorted = view.sort?.column === column.name;
          const order = isSorted ? (view.sort?.descending ? 'descending' : 'ascending') : 'none';
          return (
            <th key={column.name} scope="col" aria-sort={order} class={column.kind === 'number' ? 'n' : ''}>
              <button
                type="button"
                data-term={column.title}
                {...tipOf({ ...column, description: column.description || column.title })}
                onClick={() => onView({ ...view, sort: nextSort(view, column) }, 'push')}
              >
                {column.title}
                {isSorted && (view.sort?.descending ? ' ▾' : ' ▴')}
              </button>
            </th>
          );
        })}
      </tr>
      {hasFilters && (
        <tr>
          {columns.map((column) => (
            <th key={column.name}>
              <FilterField column={column} view={view} nRows={data.nRows} onView={onView} />
            </th>
          ))}
        </tr>
      )}
    </thead>
  );
}
