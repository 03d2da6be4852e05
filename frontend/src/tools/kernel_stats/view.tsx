/**
 * Time by kernel and by library as donuts, then the table: by kernel and operation, or summed by one of them.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readTable, readTiles } from '../../api/declared';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { Segments } from '../../widgets/segments';
import { Section, Tiles } from '../../widgets/summary';
import { parseView, viewChange, type TableColumn, type TableData } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { ShareCharts } from '../donut';
import { donutOf } from '../donuts';
import { shortKernel, shortKernels } from './kernel_name';
import { idleColumns, inOrder, tableData, type ToolProps } from '../tool';
import {
  GROUPINGS,
  groupingOf,
  initialView,
  isComputed,
  longestLaunch,
  ORDER,
  TABLES,
  TOTALS,
  withoutTable,
  type Grouped,
  type Grouping,
  type Kernels,
} from './model';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;

/** The mark of a computed occupancy. */
const COMPUTED_PX = 16;

/** The table with its columns by use and kernels by their short names. */
function kernelData(table: PayloadTable, labelOf: (kernel: string) => string): TableData {
  const data = inOrder(tableData(table), ORDER);
  const shown = (column: TableColumn): TableColumn => {
    if (column.name === 'kernel') return { ...column, label: labelOf };
    return column.name === 'occupancy_fraction' ? { ...column, extraPx: COMPUTED_PX } : column;
  };
  return { ...data, columns: data.columns.map(shown) };
}

function KernelTable({
  grouped,
  kernels,
  grouping,
  labelOf,
  params,
  setParams,
}: {
  grouped: Grouped;
  kernels: Kernels;
  grouping: Grouping;
  labelOf: (kernel: string) => string;
} & ViewProps): VNode {
  const { table, nameOf } = grouped;
  const data = useMemo(() => kernelData(table, labelOf), [table, labelOf]);
  const initial = useMemo(() => initialView(data, idleColumns(data)), [data]);
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const render = (column: TableColumn, row: number, text: string): VNode | undefined => {
    if (column.name === 'occupancy_fraction' && isComputed(kernels, row))
      return (
        <span
          data-tip={
            "Computed from registers, shared memory, block and the GPU's compute capability; " +
            'not in the trace'
          }
        >
          ≈ {text}
        </span>
      );
    const launch =
      column.name === 'max_ps' && table === kernels.table && canOpen('trace_viewer')
        ? longestLaunch(kernels, row)
        : null;
    if (!launch) return undefined;
    return (
      <button
        type="button"
        class="text-link"
        data-tip={`${text}: show this launch on the timeline`}
        onClick={() => openTool('trace_viewer', { hosts: launch.host, ...launch.params })}
      >
        {text}
      </button>
    );
  };
  const open = (row: number): void =>
    setParams(
      { ...withoutTable(params), by: undefined, [`f.${grouping.column}`]: `=${nameOf(row)}` },
      'push',
    );
  return (
    <Table
      key={grouping.name}
      data={data}
      label={table.title}
      view={view}
      onView={(next, how) => setParams(viewChange(view, next, initial), how)}
      totals={TOTALS}
      mono={['kernel', 'op']}
      barToken="--c-compute"
      render={render}
      {...(grouping.column ? { onRow: open } : {})}
    />
  );
}

export function KernelStatsView({ payload, params, setParams }: { payload: Payload } & ViewProps): VNode {
  const grouping = groupingOf(params['by']);
  const kernels = useMemo(() => readTable(payload, TABLES.kernels), [payload]);
  const grouped = useMemo(() => grouping.read(payload), [payload, grouping]);
  const { table } = grouped;
  const labelOf = useMemo(() => {
    const labels = shortKernels(kernels.texts('kernel').strings);
    return (kernel: string): string => labels.get(kernel) ?? shortKernel(kernel);
  }, [kernels]);
  const donuts = useMemo(
    () => [
      ...donutOf('kernel', readTable(payload, TABLES.top_kernels), 'total_ps', labelOf),
      ...donutOf('library', readTable(payload, TABLES.top_libraries), 'total_ps'),
    ],
    [payload, labelOf],
  );
  const pick = (column: string, name: string): void =>
    setParams({ ...withoutTable(params), by: undefined, [`f.${column}`]: `=${name}` }, 'push');
  const choose = (name: string): void =>
    setParams({ ...withoutTable(params), by: name === GROUPINGS[0]?.name ? undefined : name }, 'push');
  if (!table.n_rows && !kernels.length) return <></>;
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      {donuts.length > 0 && (
        <Section
          title="Where the time goes"
          tip="Time of all kernels, summed by kernel and by library"
          note="kernel time"
        >
          <ShareCharts donuts={donuts} onPick={pick} />
        </Section>
      )}
      <Section
        title="Kernels"
        note={table.note || 'on all chosen hosts'}
        end={<Segments label="Group by" choices={GROUPINGS} chosen={grouping.name} onChoose={choose} />}
      >
        <KernelTable {...{ grouped, kernels, grouping, labelOf, params, setParams }} />
      </Section>
    </>
  );
}
