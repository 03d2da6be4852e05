/** Time by category: a stacked bar, and below it a table with a bar per row. The same in every tool. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { format } from '../base/units';
import { Section, StackBar } from '../widgets/summary';
import type { TableColumn } from '../widgets/table/model';
import { Table } from '../widgets/table/table';
import type { Breakdown, Part } from './steps';

export interface BreakdownProps {
  title: string;
  tip?: string;
  note?: string;
  breakdown: Breakdown;
  /** The reference of time and share, for the columns' tooltips. */
  timeOf: string;
  shareOf: string;
  /** The text if nothing took time. */
  empty?: string;
}

function columnsOf(parts: readonly Part[], { timeOf, shareOf }: BreakdownProps): TableColumn[] {
  const cell = (read: (part: Part) => string | number | null) => (row: number) =>
    parts[row] ? read(parts[row]) : null;
  const hasSpread = parts.some((part) => part.sdPs); // zero for a single step and for equal steps
  const spread: TableColumn = {
    name: 'sd_ps',
    title: '±',
    kind: 'number',
    unit: 'ps',
    description: 'Standard deviation over the steps',
    cell: cell((part) => part.sdPs),
  };
  return [
    { name: 'category', title: 'Category', kind: 'text', unit: '', cell: cell((part) => part.title) },
    {
      name: 'avg_ps',
      title: 'Time',
      kind: 'number',
      unit: 'ps',
      description: timeOf,
      cell: cell((part) => part.avgPs),
    },
    ...(hasSpread ? [spread] : []),
    {
      name: 'fraction',
      title: 'Share',
      kind: 'number',
      unit: 'fraction',
      description: shareOf,
      cell: cell((part) => part.fraction),
    },
  ];
}

export function BreakdownSection(props: BreakdownProps): VNode | null {
  const { title, note, breakdown, empty } = props;
  const { parts, absent } = breakdown;
  const data = useMemo(() => ({ columns: columnsOf(parts, props), nRows: parts.length }), [breakdown]);
  const heading = { title, ...(note ? { note } : {}), ...(props.tip ? { tip: props.tip } : {}) };
  if (!parts.length)
    return empty ? (
      <Section title={title}>
        <p class="muted prose">{empty}</p>
      </Section>
    ) : null;
  const bar = parts.map((part) => ({
    ...part,
    tip: `${part.title}: ${format(part.avgPs, 'ps')}, ${format(part.fraction, 'fraction')}`,
  }));
  const label = parts.map((part) => `${part.title} ${format(part.fraction, 'fraction')}`).join(', ');
  const name = (column: TableColumn, row: number): VNode | undefined =>
    column.name === 'category' ? (
      <span
        class="part-name"
        data-tip={parts[row]?.meaning || parts[row]?.title}
        tabIndex={parts[row]?.meaning ? 0 : undefined}
      >
        <span class="dot" style={{ background: `var(${parts[row]?.token ?? '--c-idle'})` }} />
        {parts[row]?.title}
      </span>
    ) : undefined;
  return (
    <Section {...heading}>
      <StackBar parts={bar} label={label} />
      <Table
        data={data}
        label={title}
        hasToolbar={false}
        render={name}
        barToken={(row) => parts[row]?.token ?? '--c-idle'}
      />
      {absent.length > 0 && (
        <p class="muted">
          <small>No time in: {absent.join(', ')}.</small>
        </p>
      )}
    </Section>
  );
}
