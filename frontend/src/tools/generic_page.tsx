/** The page of a tool without a view of its own: verdict, tiles, the declared charts, every table. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readTiles } from '../api/declared';
import type { Payload, Table as PayloadTable } from '../api/types';
import { plural } from '../base/units';
import { StepChart } from '../widgets/step_chart';
import { Tiles } from '../widgets/summary';
import { Donut } from './donut';
import { donutOfTable, seriesOfTable } from './generic_model';
import { PayloadPage } from './payload_page';
import { TableSection } from './table_section';
import type { ToolProps } from './tool';

type LinkProps = Pick<ToolProps, 'params' | 'setParams'>;

/** A table with its chart, if it declares one. A click on a slice filters the table by its name. */
function ChartedTable({
  name,
  table,
  params,
  setParams,
}: { name: string; table: PayloadTable } & LinkProps): VNode {
  const donut = useMemo(() => (table.chart === 'donut' ? donutOfTable(name, table) : null), [table]);
  const steps = useMemo(() => (table.chart === 'steps' ? seriesOfTable(table) : null), [table]);
  const key = table.columns.find(({ kind }) => kind === 'text')?.name ?? '';
  const zoom = `${name}.zoom`;
  return (
    <div class="tool-page">
      {donut && (
        <Donut donut={donut} onPick={(slice) => setParams({ [`${name}.f.${key}`]: `=${slice}` }, 'push')} />
      )}
      {steps && (
        <StepChart
          title={table.title}
          note={table.note || plural(table.n_rows, 'row')}
          names={steps.names}
          series={steps.series}
          zoom={params[zoom]}
          onZoom={(window) => setParams({ [zoom]: window }, 'replace')}
        />
      )}
      <TableSection name={name} table={table} isTitled={!donut && !steps} {...{ params, setParams }} />
    </div>
  );
}

export function GenericView({ payload, params, setParams }: { payload: Payload } & LinkProps): VNode {
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      {Object.entries(payload.tables).map(([name, table]) => (
        <ChartedTable key={name} name={name} table={table} {...{ params, setParams }} />
      ))}
    </>
  );
}

export function GenericPage(props: ToolProps): VNode {
  const { params, setParams } = props;
  return (
    <PayloadPage
      {...props}
      format="columns"
      content={(payload) => <GenericView payload={payload} params={params} setParams={setParams} />}
    />
  );
}
