/** The view of one of a page's tables in the page's link, under the table's name: `hosts.sort=-stall_ps`. */
import { useMemo } from 'preact/hooks';
import { parseView, PLAIN_VIEW, viewChange, type TableData, type TableView } from '../widgets/table/model';
import { changeOf, paramsOf } from './generic_model';
import { idleColumns, type ToolProps } from './tool';

export interface FirstView {
  /** Columns that are hidden until they are chosen, in addition to those without information here. */
  hidden?: readonly string[];
  /** Columns shown although every row says the same. */
  always?: readonly string[];
  sort?: TableView['sort'];
}

/** The view, and the function that changes it. */
export function useTableView(
  name: string,
  { params, setParams }: Pick<ToolProps, 'params' | 'setParams'>,
  data: TableData,
  { hidden = [], always = [], sort = PLAIN_VIEW.sort }: FirstView = {},
): [TableView, (next: TableView, how: 'push' | 'replace') => void] {
  const initial = useMemo(() => {
    const idle = idleColumns(data).filter((column) => !always.includes(column));
    return { ...PLAIN_VIEW, sort, hidden: new Set([...hidden, ...idle]) };
  }, [data]);
  const view = useMemo(() => parseView(paramsOf(name, params), initial), [params, initial, name]);
  return [view, (next, how) => setParams(changeOf(name, viewChange(view, next, initial)), how)];
}
