/** Numbers, the stall of each rendezvous and host by operation, tables, and queries for Perfetto. */
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { fetchFile } from '../../api/client';
import { readIfAny, readTable, readTiles } from '../../api/declared';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { saveBlob } from '../../base/clipboard';
import { plural } from '../../base/units';
import { canOpen } from '../../state/catalog';
import { asApiError } from '../../state/payload';
import { openTool } from '../../state/selection';
import { CodeBlock } from '../../widgets/code_block';
import { StepChart } from '../../widgets/step_chart';
import { Section, Tiles } from '../../widgets/summary';
import { parseView, PLAIN_VIEW, viewChange } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { PerfettoLink } from '../perfetto_link';
import { useTableView } from '../table_view';
import { idleColumns, tableData, type ToolProps } from '../tool';
import { HIDDEN, MOST_BARS, searchOf, stallSeries, TABLES, type Rendezvous } from './model';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;

function RendezvousTable({ rows, params, setParams }: { rows: Rendezvous } & ViewProps): VNode {
  const data = useMemo(() => tableData(rows.table), [rows]);
  const initial = useMemo(
    () => ({ ...PLAIN_VIEW, hidden: new Set([...HIDDEN, ...idleColumns(data)]) }),
    [data],
  );
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  return (
    <Section title={rows.table.title} note={rows.table.note}>
      <Table
        data={data}
        view={view}
        onView={(next, how) => setParams(viewChange(view, next, initial), how)}
        label={rows.table.title}
        mono={['rendezvous', 'send_op', 'recv_op']}
        barToken="--c-collective"
        render={(column, row, text) => {
          const search = column.name === 'rendezvous' && canOpen('trace_viewer') ? searchOf(rows, row) : null;
          if (!search) return undefined;
          return (
            <button
              type="button"
              class="text-link"
              data-tip={`Search for ${search['q'] ?? ''} on the timeline`}
              onClick={() => openTool('trace_viewer', search)}
            >
              {text}
            </button>
          );
        }}
      />
    </Section>
  );
}

function Plain({
  name,
  table,
  onRow,
  ...link
}: { name: string; table: PayloadTable; onRow?: (row: number) => void } & ViewProps): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const [view, setView] = useTableView(name, link, data);
  return (
    <Section title={table.title} note={table.note}>
      <Table
        data={data}
        view={view}
        onView={setView}
        label={table.title}
        hasToolbar={table.n_rows > 10}
        mono={['worst']}
        barToken="--c-collective"
        {...(onRow ? { onRow } : {})}
      />
    </Section>
  );
}

/** Saves all transfers as a file for Perfetto; what goes wrong is said next to the button. */
function SaveFile({ run, hosts, info }: ToolProps): VNode {
  const [state, setState] = useState('');
  const save = async (): Promise<void> => {
    setState('Making the file…');
    try {
      const blob = await fetchFile({ tool: info.name, run, hosts, params: {} }, 'perfetto');
      saveBlob(blob, `${run.replace(/[^\w.-]+/g, '_')}_dcn.trace.json.gz`);
      setState('');
    } catch (error) {
      const { message, remedy } = asApiError(error);
      setState(`${message} ${remedy}`);
    }
  };
  return (
    <>
      {state && <span role="status">{state}</span>}{' '}
      <button type="button" class="button small" onClick={() => void save()}>
        Save for Perfetto
      </button>
    </>
  );
}

function Queries({ payload, ...props }: { payload: Payload } & ToolProps): VNode {
  const rows = useMemo(() => readTable(payload, TABLES.queries), [payload]);
  const [question, sql] = [rows.text('question'), rows.text('sql')];
  return (
    <Section
      title={rows.table.title}
      note="each answers one question about all transfers"
      end={<SaveFile {...props} />}
    >
      <p class="muted">
        Save the file, open it with “Open trace file” at <PerfettoLink /> or in your own copy of Perfetto, and
        paste a query into “Query (SQL)”. This page and its server send the file nowhere.
      </p>
      {Array.from({ length: rows.length }, (_, row) => (
        <details key={row}>
          <summary>{question(row)}</summary>
          <CodeBlock code={sql(row)} label={question(row)} />
        </details>
      ))}
    </Section>
  );
}

export function MegascaleView({ payload, ...props }: { payload: Payload } & ToolProps): VNode {
  const { params, setParams } = props;
  const rendezvous = useMemo(() => readTable(payload, TABLES.rendezvous), [payload]);
  const hosts = useMemo(() => readTable(payload, TABLES.hosts), [payload]);
  const slices = useMemo(() => readIfAny(payload, TABLES.slices), [payload]);
  const hostTable = useMemo(() => ({ ...hosts.table, title: 'Hosts' }), [hosts]);
  const names = useMemo(
    () =>
      Array.from({ length: Math.min(rendezvous.length, MOST_BARS) }, (_, row) => row).map(
        rendezvous.text('rendezvous'),
      ),
    [rendezvous],
  );
  const times = rendezvous.number('count');
  const series = useMemo(() => stallSeries(rendezvous, (row) => times(row) ?? 0), [rendezvous]);
  const byHost = useMemo(() => stallSeries(hosts, () => 1), [hosts]);
  const hostNames = useMemo(
    () => Array.from({ length: Math.min(hosts.length, MOST_BARS) }, (_, row) => row).map(hosts.text('host')),
    [hosts],
  );
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      {rendezvous.length > 0 && (
        <StepChart
          title="Stall by rendezvous"
          tip="Sum of all transfers on all cores, by the operation that the cores wait in"
          note={
            rendezvous.length > MOST_BARS
              ? `longest ${MOST_BARS} of ${rendezvous.length.toLocaleString('en-US')}, by total stall`
              : `total stall of ${plural(rendezvous.length, 'rendezvous', 'rendezvous')}`
          }
          names={names}
          axisName="rendezvous"
          series={series}
          zoom={params['bars']}
          onZoom={(bars) => setParams({ bars }, 'replace')}
        />
      )}
      {rendezvous.length > 0 && <RendezvousTable rows={rendezvous} params={params} setParams={setParams} />}
      {hosts.length > 1 && (
        <StepChart
          title="Stall by host"
          note={
            hosts.length > MOST_BARS
              ? `mean per core, of the first ${MOST_BARS} of ${hosts.length.toLocaleString('en-US')} hosts`
              : 'mean per core, over the whole capture'
          }
          names={hostNames}
          axisName="host"
          series={byHost}
          zoom={params['hostbars']}
          onZoom={(hostbars) => setParams({ hostbars }, 'replace')}
        />
      )}
      <Plain
        name="hosts"
        {...{ params, setParams }}
        table={hostTable}
        onRow={(row) => openTool('trace_viewer', { hosts: hosts.text('host')(row) })}
      />
      {slices && <Plain name="slices" table={slices.table} {...{ params, setParams }} />}
      <Queries {...props} payload={payload} />
    </>
  );
}
