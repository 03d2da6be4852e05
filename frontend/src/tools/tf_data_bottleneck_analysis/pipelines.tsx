/** All pipelines of all hosts, the slowest first: a click on one shows its calls. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { Section } from '../../widgets/summary';
import { parseView, viewChange, type TableColumn } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { idleColumns, tableData, type ToolProps } from '../tool';
import { pipelineParam, pipelinesOf, type Chosen } from './model';

/** With more pipelines the table scrolls: the graph should not be pages below. */
const ROWS_IN_FULL = 8;
const FEW_ROWS = 6;
/** Columns repeated in the name or in another column. */
const HIDDEN_AT_FIRST = ['kind', 'bottleneck'];
/** Shown even if all rows are alike. */
const ALWAYS = new Set(['host', 'pipeline', 'bottleneck_long_name']);

export function Pipelines({
  payload,
  table,
  chosen,
  params,
  setParams,
}: { payload: Payload; table: PayloadTable; chosen: Chosen | null } & Pick<
  ToolProps,
  'params' | 'setParams'
>): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const names = useMemo(() => pipelinesOf(payload), [payload]);
  const initial = useMemo(
    () => ({
      sort: null,
      query: '',
      filters: {},
      hidden: new Set([...HIDDEN_AT_FIRST, ...idleColumns(data).filter((name) => !ALWAYS.has(name))]),
    }),
    [data],
  );
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const chosenRow = names.findIndex(
    ({ host, pipeline }) => host === chosen?.host && pipeline === chosen.pipeline,
  );
  const customCell = (column: TableColumn, _row: number, text: string): VNode | undefined => {
    if (column.name !== 'pipeline') return undefined;
    return (
      <button type="button" class="text-link">
        {text}
      </button>
    );
  };
  return (
    <Section title={table.title || 'Pipelines'} note={table.note || 'slow: a call of over 50 µs'}>
      <Table
        data={data}
        label={table.title || 'Pipelines'}
        view={view}
        onView={(next, how) => setParams(viewChange(view, next, initial), how)}
        mono={['bottleneck_long_name', 'bottleneck']}
        barToken="--c-input"
        render={customCell}
        hasToolbar={data.nRows > FEW_ROWS}
        rowsInFull={ROWS_IN_FULL}
        maxHeight="330px"
        chosenRow={chosenRow}
        onRow={(row) =>
          setParams(
            { pipeline: pipelineParam(names, row), rank: undefined, stage: undefined, view: undefined },
            'push',
          )
        }
      />
    </Section>
  );
}
