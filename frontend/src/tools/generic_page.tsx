/** The page of a tool without a view of its own: verdict, tiles, the declared charts, every table. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readTiles } from '../api/declared';
import type { Payload, Table as PayloadTable } from '../api/types';
import { plural } from '../base/units';
import { StepChart } from '../widgets/step_chart';
import { Section, Tiles } from '../widgets/summary';
import { parseView, PLAIN_VIEW, viewChange } from '../widgets/table/model';
import { Table } from '../widgets/table/table';
import { Donut } from './donut';
import { changeOf, donutOfTable, paramsOf, seriesOfTable } from './generic_model';
import { PayloadPage } from './payload_page';
import { idleColumns, tableData, type ToolProps } from './tool';

type LinkProps = Pick<ToolProps, 'params' | 'setParams'>;

/** A click on a slice filters the table by its name. */
function Chart({
  name,
  table,
  params,
  setParams,
}: { name: string; table: PayloadTable } & LinkProps): VNode | null {
  const donut = useMemo(() => (table.chart === 'donut' ? donutOfTable(name, table) : null), [table]);
  const steps = useMemo(() => (table.chart === 'steps' ? seriesOfTable(table) : null), [table]);
  const key = table.columns.find(({ kind }) => kind === 'text')?.name ?? '';
  if (donut)
    return (
      <Donut donut={donut} onPick={(slice) => setParams({ [`${name}.f.${key}`]: `=${slice}` }, 'push')} />
    );
  if (!steps) return null;
  const zoom = `${name}.zoom`;
  return (
    <StepChart
      title={table.title}
      note={table.note || plural(table.n_rows, 'row')}
      names={steps.names}
      series={steps.series}
      zoom={params[zoom]}
      onZoom={(window) => setParams({ [zoom]: window }, 'replace')}
    />
  );
}

function Rows({ name, table, params, setParams }: { name: string; table: PayloadTable } & LinkProps): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const initial = useMemo(() => ({ ...PLAIN_VIEW, hidden: new Set(idleColumns(data)) }), [data]);
  const view = useMemo(() => parseView(paramsOf(name, params), initial), [params, initial]);
  return (
    <Section title={table.title} note={table.note || plural(table.n_rows, 'row')}>
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

export function GenericView({ payload, params, setParams }: { payload: Payload } & LinkProps): VNode {
  const link = { params, setParams };
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      {Object.entries(payload.tables).map(([name, table]) => (
        <div key={name} class="tool-page">
          <Chart name={name} table={table} {...link} />
          <Rows name={name} table={table} {...link} />
        </div>
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
