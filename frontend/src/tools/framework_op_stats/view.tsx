/** Shares of time as donuts, with or without idle time, then the table of all operations. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readTable, readTiles, type RowsOf } from '../../api/declared';
import type { Payload } from '../../api/types';
import { Segments } from '../../widgets/segments';
import { Section, Tiles } from '../../widgets/summary';
import { parseView, viewChange } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { ShareCharts } from '../donut';
import { idleColumns, inOrder, sideToken, tableData, type ToolProps } from '../tool';
import { countsIdle, donutsOf, GROUPS, groupOf, initialView, ORDER, TABLES, TOTALS } from './model';
import './style.css';

type ViewProps = Pick<ToolProps, 'params' | 'setParams' | 'info'>;

function IdleSwitch({ params, setParams, info }: ViewProps): VNode | null {
  const param = info.params.find((candidate) => candidate.name === 'idle');
  if (!param) return null;
  const initial = param.default !== false;
  const isOn = countsIdle(params['idle'], initial);
  return (
    <label class="switch" data-tip={param.help}>
      <input
        type="checkbox"
        checked={isOn}
        onChange={() => setParams({ idle: !isOn === initial ? undefined : String(!isOn) }, 'push')}
      />
      {param.title}
    </label>
  );
}

function Operations({
  ops,
  params,
  setParams,
}: { ops: RowsOf<typeof TABLES.ops> } & Omit<ViewProps, 'info'>): VNode {
  const { table } = ops;
  const data = useMemo(() => inOrder(tableData(table), ORDER), [table]);
  const initial = useMemo(() => initialView(data, idleColumns(data)), [data]);
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  return (
    <Section
      title={table.title || 'Operations'}
      {...(table.note ? { note: table.note } : {})}
      end={
        <span class="group-by muted">
          Group by{' '}
          <Segments
            label="Group by"
            choices={GROUPS}
            chosen={groupOf(params['group'])}
            onChoose={(name) => setParams({ group: name === GROUPS[0].name ? undefined : name }, 'push')}
          />
        </span>
      }
    >
      <Table
        data={data}
        label={table.title || 'Operations'}
        view={view}
        onView={(next, how) => setParams(viewChange(view, next, initial), how)}
        totals={TOTALS}
        mono={['operation', 'input_shapes', 'call_stack']}
        barToken={sideToken(ops.text('host_or_device'))}
      />
    </Section>
  );
}

export function OpStatsView({ payload, ...props }: { payload: Payload } & ViewProps): VNode {
  const ops = readTable(payload, TABLES.ops);
  const donuts = useMemo(() => donutsOf(payload), [payload]);
  const pick = (donut: string, name: string): void =>
    props.setParams({ [donut.endsWith('type') ? 'f.type' : 'f.operation']: `=${name}` }, 'push');
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      {donuts.length > 0 && (
        <Section
          title="Where the time goes"
          tip="Self time of all operations, by type and by operation, on each side"
          note="self time"
          end={<IdleSwitch {...props} />}
        >
          <ShareCharts donuts={donuts} onPick={pick} />
        </Section>
      )}
      <Operations ops={ops} params={props.params} setParams={props.setParams} />
    </>
  );
}
