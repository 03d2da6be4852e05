/** The table of hosts at the end of several pages. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Table as PayloadTable } from '../api/types';
import { categoryToken } from '../base/color';
import { choose } from '../state/selection';
import { Section } from '../widgets/summary';
import { PLAIN_VIEW, type TableColumn } from '../widgets/table/model';
import { Table } from '../widgets/table/table';
import { idleColumns, tableData } from './tool';

/** Shares of idle time are gray, those of waiting for input have its color; others have none. */
function tokenOf({ name }: TableColumn): string {
  if (name.includes('idle') || name.includes('other')) return categoryToken('idle');
  return categoryToken(name.includes('input') || name.includes('waiting') ? 'input' : 'compute');
}

/** Hosts in the server's order; a click shows only that one. */
export function HostsSection({ table, note }: { table: PayloadTable; note: string }): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const view = useMemo(
    () => ({ ...PLAIN_VIEW, hidden: new Set(idleColumns(data).filter((name) => !name.startsWith('host'))) }),
    [data],
  );
  const nameOf = (row: number): string =>
    String(data.columns.find((column) => column.name === 'host')?.cell(row) ?? '');
  const link = (column: TableColumn, _row: number, text: string): VNode | undefined =>
    column.name === 'host' ? (
      <button type="button" class="text-link">
        {text}
      </button>
    ) : undefined;
  return (
    <Section title={table.title || 'Hosts'} note={table.note || note}>
      <Table
        data={data}
        view={view}
        label={table.title || 'Hosts'}
        hasToolbar={data.nRows > 10}
        render={link}
        barToken={(_row, column) => tokenOf(column)}
        onRow={(row) => choose({ hosts: [nameOf(row)] })}
      />
    </Section>
  );
}
