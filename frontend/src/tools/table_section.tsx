/** A table of a payload as a section, with its state in the link. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Table as PayloadTable } from '../api/types';
import { plural } from '../base/units';
import { Section } from '../widgets/summary';
import { parseView, PLAIN_VIEW, viewChange } from '../widgets/table/model';
import { Table } from '../widgets/table/table';
import { changeOf, paramsOf } from './generic_model';
import { idleColumns, tableData, type ToolProps } from './tool';

/** `params` of a table begin with its name: `ops.sort`. */
export function TableSection({
  name,
  table,
  params,
  setParams,
  end,
  hidden = [],
  always = [],
}: {
  name: string;
  table: PayloadTable;
  end?: VNode | undefined;
  /** Columns hidden at first, besides those that say nothing. */
  hidden?: readonly string[];
  /** Columns shown although every row says the same. */
  always?: readonly string[];
} & Pick<ToolProps, 'params' | 'setParams'>): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const initial = useMemo(
    () => ({
      ...PLAIN_VIEW,
      hidden: new Set([...idleColumns(data).filter((column) => !always.includes(column)), ...hidden]),
    }),
    [data],
  );
  const view = useMemo(() => parseView(paramsOf(name, params), initial), [params, initial]);
  return (
    <Section title={table.title} note={table.note || plural(table.n_rows, 'row')} end={end}>
      {table.n_rows > 0 && (
        <Table
          data={data}
          view={view}
          label={table.title}
          hasToolbar={table.n_rows > 10}
          onView={(next, how) => setParams(changeOf(name, viewChange(view, next, initial)), how)}
          barToken="--c-compute"
        />
      )}
    </Section>
  );
}
