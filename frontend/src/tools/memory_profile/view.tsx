/**
 * Numbers of one memory, all memories side by side, the history, memory in use at the peak or another moment,
 * the floor.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readNumber, readTable, readTiles, type ColumnOf, type RowsOf } from '../../api/declared';
import type { Payload } from '../../api/types';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { Section, Tiles } from '../../widgets/summary';
import {
  parseView,
  PLAIN_VIEW,
  viewChange,
  type TableColumn,
  type TableData,
} from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { TableSection } from '../table_section';
import { backToPeak } from '../time_window_hands';
import { idleColumns, tableData, type ToolProps } from '../tool';
import { FloorSection } from './floor';
import { HistorySection } from './history';
import { MemoriesSection } from './memories';
import { memoriesOf, SCALARS, TABLES } from './model';
import './style.css';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;

type Active = RowsOf<typeof TABLES.active>;
type ActiveColumn = ColumnOf<typeof TABLES.active>;

const HIDDEN_AT_FIRST: readonly ActiveColumn[] = ['event', 'requested_bytes', 'region', 'step'];
const TOTALS: readonly ActiveColumn[] = ['total_bytes', 'fraction', 'n_occurrences'];
const MONO: readonly ActiveColumn[] = ['op', 'shape'];

/** Tables of the allocators of the memory in use at the moment. */
const HOLDERS: readonly string[] = [TABLES.modules.name, TABLES.operations.name];
const COUNTS: readonly ColumnOf<typeof TABLES.modules>[] = ['n_at', 'n_allocated', 'n_kept'];

/** An allocation whose operation the trace does not name says so. */
function withOp(data: TableData): TableData {
  const named = (column: TableColumn): TableColumn => {
    if (column.name !== 'op') return column;
    const filled: TableColumn = { ...column, cell: (row) => column.cell(row) ?? '(no operation recorded)' };
    delete filled.words;
    return filled;
  };
  return { ...data, columns: data.columns.map(named) };
}

function ActiveTable({ rows, host, params, setParams }: { rows: Active; host: string } & ViewProps): VNode {
  const { table } = rows;
  const data = useMemo(() => withOp(tableData(table)), [table]);
  const initial = useMemo(
    () => ({
      ...PLAIN_VIEW,
      hidden: new Set([...HIDDEN_AT_FIRST, ...idleColumns(data).filter((name) => name !== 'op')]),
    }),
    [data],
  );
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const [startPs, eventId] = [rows.number('start_ps'), rows.number('event')];
  const render = (column: TableColumn, row: number, text: string): VNode | undefined => {
    const [start, event] = [startPs(row), eventId(row)];
    if (column.name !== 'start_ps' || start === null || event === null || !canOpen('trace_viewer'))
      return undefined;
    const around = {
      start_ps: String(Math.max(0, start - 1e9)),
      end_ps: String(start + 1e9),
      event: String(event),
    };
    return (
      <button
        type="button"
        class="text-link"
        data-tip={`${text}: show this allocation on the timeline`}
        onClick={() => openTool('trace_viewer', { hosts: host, ...around })}
      >
        {text}
      </button>
    );
  };
  return (
    <Table
      data={data}
      label={table.title}
      view={view}
      onView={(next, how) => setParams(viewChange(view, next, initial), how)}
      totals={TOTALS}
      mono={MONO}
      barToken="--q-0"
      render={render}
    />
  );
}

export function MemoryProfileView({ payload, params, setParams }: { payload: Payload } & ViewProps): VNode {
  const active = useMemo(() => readTable(payload, TABLES.active), [payload]);
  const memories = useMemo(() => memoriesOf(payload), [payload]);
  const chosen = readNumber(payload, SCALARS.row) ?? 0;
  const memory = memories[chosen];
  const tracePs = readNumber(payload, SCALARS.trace_duration_ps) ?? 1;
  const choose = (name: string): void =>
    setParams({ memory: name, start_ps: undefined, end_ps: undefined, at_ps: undefined }, 'push');
  const back = backToPeak(params, setParams);
  return (
    <>
      {memories.length > 1 && (
        <label class="mp-choice">
          Memory
          <select
            class="field"
            value={memory?.fullName}
            onChange={(event) => choose(event.currentTarget.value)}
          >
            {memories.map(({ fullName, name, host }) => (
              <option key={fullName} value={fullName}>
                {payload.hosts.length > 1 ? `${name} on ${host}` : name}
              </option>
            ))}
          </select>
        </label>
      )}
      <Tiles tiles={readTiles(payload)} />
      <HistorySection key={memory?.fullName} payload={payload} memory={memory} setParams={setParams} />
      <Section title={active.table.title} note="identical allocations are grouped" end={back}>
        <ActiveTable rows={active} host={memory?.host ?? ''} params={params} setParams={setParams} />
      </Section>
      {HOLDERS.map((name) => {
        const table = payload.tables[name];
        return (
          table && (
            <TableSection
              key={name}
              name={name}
              table={table}
              params={params}
              setParams={setParams}
              end={back}
              hidden={COUNTS}
            />
          )
        );
      })}
      <FloorSection rows={readTable(payload, TABLES.floor)} riseBytes={memory?.floorRise ?? 0} />
      {memories.length > 1 && (
        <MemoriesSection
          memories={memories}
          table={readTable(payload, TABLES.memories).table}
          chosen={chosen}
          tracePs={tracePs}
          onChoose={choose}
        />
      )}
    </>
  );
}
