/** A table of a payload as a section, with its state in the link. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Table as PayloadTable } from '../api/types';
import { plural } from '../base/units';
import { Section } from '../widgets/summary';
import { Table } from '../widgets/table/table';
import { useTableView } from './table_view';
import { tableData, type ToolProps } from './tool';

/** `params` of a table begin with its name: `ops.sort`. */
export function TableSection({
  name,
  table,
  params,
  setParams,
  end,
  hidden = [],
  always = [],
  isTitled = true,
}: {
  name: string;
  table: PayloadTable;
  end?: VNode | undefined;
  /** Columns hidden at first, in addition to those without information. */
  hidden?: readonly string[];
  /** Columns shown although every row says the same. */
  always?: readonly string[];
  /** Whether it has its title: not where a chart of it is right above, under the same title. */
  isTitled?: boolean;
} & Pick<ToolProps, 'params' | 'setParams'>): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const [view, setView] = useTableView(name, { params, setParams }, data, { hidden, always });
  const rows = table.n_rows > 0 && (
    <Table
      data={data}
      view={view}
      label={table.title}
      hasToolbar={table.n_rows > 10}
      onView={setView}
      barToken="--c-compute"
    />
  );
  if (!isTitled) return <>{rows}</>;
  return (
    <Section title={table.title} note={table.note || plural(table.n_rows, 'row')} end={end}>
      {rows}
    </Section>
  );
}
