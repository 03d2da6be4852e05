/** Shares of time as donuts, then the table of all operations; a row leads to the operation's details. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { rowOf } from '../../api/table';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { Section, Tiles } from '../../widgets/summary';
import { parseView, viewChange, type TableColumn } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { Tail } from '../../widgets/tail';
import { Donut } from '../donut';
import { OpCard } from '../op_card';
import { idleColumns, rowOfOp, tableData, type ToolProps } from '../tool';
import { donutsOf, filterOf, initialView, TOTALS } from './model';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;

function Operations({ table, params, setParams }: { table: PayloadTable } & ViewProps): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const initial = useMemo(() => initialView(data, idleColumns(data)), [data]);
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const { program = '', op } = params;
  const chosenRow = useMemo(() => (op ? rowOfOp(data, program, op) : -1), [data, op, program]);
  const choose = (row: number): void => {
    const cells = rowOf(table, row);
    setParams(
      row === chosenRow
        ? { program: undefined, op: undefined }
        : { program: String(cells['program']), op: String(cells['op']) },
      'push',
    );
  };
  const render = (column: TableColumn, _row: number, text: string): VNode | undefined => {
    if (column.name === 'provenance' || column.name === 'source') return <Tail text={text} />;
    if (column.name !== 'op') return undefined;
    return (
      <span class="text-link" data-tip={`${text}\nSee what is known of it`}>
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
  const { ops } = payload.tables;
  const { op } = params;
  const donuts = useMemo(() => donutsOf(payload), [payload]);
  const pick = (donut: string, name: string): void => {
    const filter = filterOf(donut, name);
    if (filter) setParams(filter, 'push');
  };
  return (
    <>
      <Tiles tiles={Object.values(payload.scalars)} />
      <div class={op ? 'op-page has-card' : 'op-page'}>
        <div class="tool-page">
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
