/**
 * Which graph, how much of it is compatible, the tree of its scopes, its incompatible operations, and all
 * operations by kind.
 */
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { readTable, readTiles, type ColumnOf, type RowOf, type RowsOf } from '../../api/declared';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { RichText } from '../../widgets/rich_text';
import { Segments } from '../../widgets/segments';
import { DiagnosticsList } from '../../widgets/states';
import { Facts, Section, Tiles } from '../../widgets/summary';
import {
  parseView,
  PLAIN_VIEW,
  viewChange,
  type TableColumn,
  type TableView,
} from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { idleColumns, tableData, type ToolProps } from '../tool';
import { DrawingSection } from './drawing_section';
import { boxesWith, keyOf, scopeOfKey, scopesOf, TABLES, wayTo, within, type Scope } from './model';
import { Tree } from './tree';
import './style.css';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;
type IncompatibleColumn = ColumnOf<typeof TABLES.incompatible>;
type ByOpColumn = ColumnOf<typeof TABLES.by_op>;

const TREES = [
  { name: 'all', title: 'All scopes' },
  { name: 'invalid', title: 'Incompatible only' },
];

const HIDDEN: readonly IncompatibleColumn[] = ['scope', 'fix'];
const PROSE: readonly IncompatibleColumn[] = ['fix'];
const MONO: readonly IncompatibleColumn[] = ['op', 'name', 'function'];
const TOTALS: readonly ByOpColumn[] = ['n_ops', 'fraction'];

function Incompatible({
  rows,
  scope,
  params,
  setParams,
}: { rows: RowsOf<typeof TABLES.incompatible>; scope: Scope | undefined } & ViewProps): VNode {
  const { table } = rows;
  const all = useMemo(() => tableData(table), [table]);
  const data = useMemo(() => within(rows, all, scope), [table, all, scope]);
  const initial = useMemo(
    () => ({
      ...PLAIN_VIEW,
      hidden: new Set<string>([...HIDDEN, ...idleColumns(all).filter((name) => name === 'function')]),
    }),
    [all],
  );
  const view = useMemo(() => parseView(params, initial), [params, initial]);
  const render = (column: TableColumn, _row: number, text: string): VNode | undefined =>
    column.name === 'fix' ? <RichText text={text} /> : undefined;
  return (
    <Table
      data={data}
      label={table.title}
      view={view}
      onView={(next, how) => setParams(viewChange(view, next, initial), how)}
      mono={MONO}
      prose={PROSE}
      render={render}
    />
  );
}

function ByOperation({ table }: { table: PayloadTable }): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const render = (column: TableColumn, _row: number, text: string): VNode | undefined => {
    if (column.name === 'fix') return <RichText text={text} />;
    if (column.name !== 'status') return undefined;
    return (
      <span class={`tc-status ${text === 'valid' ? 'good' : text === 'incompatible' ? 'bad' : ''}`}>
        {text}
      </span>
    );
  };
  const [view, setView] = useState<TableView>({ ...PLAIN_VIEW, hidden: new Set(['fix']) });
  return (
    <Table
      data={data}
      label={table.title}
      view={view}
      onView={setView}
      mono={['op']}
      totals={TOTALS}
      barToken="--q-0"
      prose={PROSE}
      render={render}
    />
  );
}

/** Every kind of problem once, with its full remedy. */
function Fixes({ rows }: { rows: RowsOf<typeof TABLES.fixes> }): VNode {
  return (
    <ul class="tc-fixes">
      {rows.all().map(({ kind, fix, n_ops, ops }) => (
        <li key={`${kind} ${fix}`}>
          <b>{kind}</b> <span class="tc-status bad">{(n_ops ?? 0).toLocaleString('en')}</span>{' '}
          <code>{ops}</code>
          <p>
            <RichText text={fix} />
          </p>
        </li>
      ))}
    </ul>
  );
}

/** The graph shown on the page. */
function shownOf(graphs: readonly RowOf<typeof TABLES.graphs>[]): string {
  return graphs.find(({ is_shown }) => is_shown)?.graph ?? '';
}

function Choice({
  graphs,
  onChoose,
}: {
  graphs: RowOf<typeof TABLES.graphs>[];
  onChoose: (name: string) => void;
}): VNode {
  return (
    <label class="tc-choice">
      Graph
      <select class="field" value={shownOf(graphs)} onChange={(event) => onChoose(event.currentTarget.value)}>
        {graphs.map(({ graph, kind }) => (
          <option key={graph} value={graph}>
            {`${graph} — ${kind}`}
          </option>
        ))}
      </select>
    </label>
  );
}

function WholeGraph({ onChoose }: { onChoose: () => void }): VNode {
  return (
    <button type="button" class="button small" onClick={onChoose}>
      Whole graph
    </button>
  );
}

export function TpuCompatibilityView({
  payload,
  run,
  hosts,
  params,
  setParams,
}: { payload: Payload } & Pick<ToolProps, 'run' | 'hosts'> & ViewProps): VNode {
  const [incompatible, fixes] = [readTable(payload, TABLES.incompatible), readTable(payload, TABLES.fixes)];
  const byOp = readTable(payload, TABLES.by_op).table;
  const scopes = useMemo(() => scopesOf(payload), [payload]);
  const graphs = useMemo(() => readTable(payload, TABLES.graphs).all(), [payload]);
  const chosen = scopeOfKey(scopes, params['scope']);
  const isInvalidOnly = params['tree'] === 'invalid';
  const scopeTitle = chosen
    ? `in ${chosen.fn && chosen.fn !== chosen.path ? `${chosen.fn}: ` : ''}${chosen.path}`
    : 'in the whole graph';
  const reasons = readTable(payload, TABLES.not_checked)
    .all()
    .map(({ reason, n_ops }) => ({ name: reason, value: (n_ops ?? 0).toLocaleString('en') }));
  return (
    <>
      {graphs.length > 1 && (
        <Choice
          graphs={graphs}
          onChoose={(graph) =>
            setParams({ graph, scope: undefined, open: undefined, boxes: undefined, node: undefined }, 'push')
          }
        />
      )}
      <Tiles tiles={readTiles(payload)} />
      <DrawingSection
        {...{ run, hosts, params, setParams, scopes, chosen }}
        graph={shownOf(graphs)}
        summary={payload}
      />
      <Section
        title="Scopes"
        note="choose a scope to show its contents, here and in the drawing"
        end={
          <Segments
            label="Show"
            choices={TREES}
            chosen={isInvalidOnly ? 'invalid' : 'all'}
            onChoose={(name) => setParams({ tree: name === 'invalid' ? 'invalid' : undefined }, 'push')}
          />
        }
      >
        <p class="tc-legend">
          <i style={{ background: 'var(--good)' }} /> valid on a TPU{' '}
          <i style={{ background: 'var(--bad)' }} /> incompatible{' '}
          <i style={{ background: 'var(--line-strong)' }} /> not checked: runs on the host
        </p>
        <Tree
          scopes={scopes}
          chosen={chosen}
          open={params['open']}
          isInvalidOnly={isInvalidOnly}
          onOpen={(open) => setParams({ open }, 'replace')}
          onChoose={(scope) =>
            setParams(
              {
                scope: keyOf(scope) || undefined,
                boxes: boxesWith(params['boxes'], wayTo(scopes, scope), true),
                node: undefined,
              },
              'push',
            )
          }
        />
      </Section>
      {incompatible.length > 0 && (
        <Section
          title={incompatible.table.title}
          note={incompatible.note || scopeTitle}
          end={chosen ? <WholeGraph onChoose={() => setParams({ scope: undefined }, 'push')} /> : undefined}
        >
          <Incompatible rows={incompatible} scope={chosen} params={params} setParams={setParams} />
        </Section>
      )}
      {fixes.length > 0 && (
        <Section title={fixes.table.title} note="by kind of operation, in the whole graph">
          <Fixes rows={fixes} />
        </Section>
      )}
      <Section title={byOp.title} note="of the whole graph">
        <ByOperation table={byOp} />
      </Section>
      {reasons.length > 0 && (
        <Section title="Why not checked" tip="They run on the host" note="nodes">
          <Facts facts={reasons} />
        </Section>
      )}
      <Section title="About the list" tip="Where the list of operations that TPUs can run comes from">
        <DiagnosticsList items={payload.diagnostics.filter((item) => item.severity === 'info')} />
      </Section>
    </>
  );
}
