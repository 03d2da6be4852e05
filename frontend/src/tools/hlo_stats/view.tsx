/** Shares of time as donuts, then the table of all operations; a row leads to the operation's details. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { rowOf } from '../../api/table';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { Section, Tiles } from '../../widgets/summary';
import { parseView, viewChange, type TableColumn } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { Tail } from '../../widgets/tail';
import { Donut } from '../donut';
import { idleColumns, tableData, type ToolProps } from '../tool';
import { donutsOf, filterOf, initialView, TOTALS } from './model';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;

function Operations({ table, params, setParams }: { table: PayloadTable } & ViewProps): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const initial = useMemo(() => initialView(data, idleColumns(data)), [data]);
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const isLinked = canOpen('op_profile');
  const open = (row: number): void => {
    const { program, op } = rowOf(table, row);
    openTool('op_profile', { program: String(program), op: String(op) });
  };
  const render = (column: TableColumn, row: number, text: string): VNode | undefined => {
    if (column.name === 'provenance' || column.name === 'source') return <Tail text={text} />;
    if (column.name !== 'op' || !isLinked) return undefined;
    return (
      <button type="button" class="text-link" data-tip={`${text}\nSee its details in the op profile`} onClick={() => open(row)}>
        {text}
      </button>
    );
  };
  return (
    <Section title={table.title} note={table.note || 'on all devices of the chosen hosts'}>
      <Table
        data={data}
        label={table.title}
        view={view}
        onView={(next, how) => setParams(viewChange(view, next, initial), how)}
        totals={TOTALS}
        mono={['op', 'expression', 'provenance', 'source']}
        barToken="--c-compute"
        render={render}
      />
    </Section>
  );
}

export function HloStatsView({ payload, params, setParams }: { payload: Payload } & ViewProps): VNode {
  const { ops } = payload.tables;
  const donuts = useMemo(() => donutsOf(payload), [payload]);
  const pick = (donut: string, name: string): void => {
    const filter = filterOf(donut, name);
    if (filter) setParams(filter, 'push');
  };
  return (
    <>
      <Tiles tiles={Object.values(payload.scalars)} />
      {donuts.length > 0 && (
        <Section title="Where the time goes" note="self time of operations">
          <div class="donuts">
            {donuts.map((donut) => (
              <Donut key={donut.name} donut={donut} onPick={(name) => pick(donut.name, name)} />
            ))}
          </div>
        </Section>
      )}
      {ops && <Operations table={ops} params={params} setParams={setParams} />}
    </>
  );
}
