/** Shares of time as donuts, then the table of all operations; a row leads to the operation's details. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readTable, readTiles, type RowsOf } from '../../api/declared';
import type { Payload } from '../../api/types';
import { Section, Tiles } from '../../widgets/summary';
import { parseView, viewChange, type TableColumn } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { ShareCharts } from '../donut';
import { OpCard } from '../op_card';
import { placeCell } from '../source';
import { idleColumns, inOrder, opChoice, rowOfOp, tableData, type ToolProps } from '../tool';
import { donutsOf, filterOf, initialView, ORDER, TABLES, TOTALS, withPlainNames } from './model';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;

type Ops = RowsOf<typeof TABLES.ops>;

function Operations({ ops, params, setParams }: { ops: Ops } & ViewProps): VNode {
  const { table } = ops;
  const data = useMemo(() => withPlainNames(inOrder(tableData(table), ORDER)), [table]);
  const initial = useMemo(() => initialView(data, idleColumns(data)), [data]);
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const { program = '', op } = params;
  const chosenRow = useMemo(() => (op ? rowOfOp(ops, program, op) : -1), [ops, op, program]);
  const choose = (row: number): void => setParams(opChoice(ops, row, row === chosenRow), 'push');
  const render = (column: TableColumn, _row: number, text: string, full: string): VNode | undefined => {
    if (column.name !== 'op') return placeCell(column, text, full);
    return (
      <span class="text-link" data-tip={`${full}\nShow its details`}>
        {text}
      </span>
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
        onRow={choose}
        chosenRow={chosenRow < 0 ? undefined : chosenRow}
      />
    </Section>
  );
}

export function HloStatsView({
  payload,
  run,
  hosts,
  params,
  setParams,
}: { payload: Payload } & ToolProps): VNode {
  const ops = useMemo(() => readTable(payload, TABLES.ops), [payload]);
  const { op } = params;
  const donuts = useMemo(() => donutsOf(payload), [payload]);
  const pick = (donut: string, name: string): void => {
    const filter = filterOf(donut, name);
    if (filter) setParams(filter, 'push');
  };
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      <div class={op ? 'op-page has-card' : 'op-page'}>
        <div class="tool-page">
          {donuts.length > 0 && (
            <Section
              title="Where the time goes"
              tip="Self time of all operations, summed by category, operation, limiting resource and source line"
              note="self time of operations"
            >
              <ShareCharts donuts={donuts} onPick={pick} areBars />
            </Section>
          )}
          <Operations ops={ops} params={params} setParams={setParams} />
        </div>
        {op && (
          <OpCard
            run={run}
            hosts={hosts}
            program={params['program'] ?? ''}
            op={op}
            onClose={() => setParams({ program: undefined, op: undefined }, 'push')}
          />
        )}
      </div>
    </>
  );
}
