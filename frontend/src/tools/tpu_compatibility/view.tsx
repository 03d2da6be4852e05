/**
 * Which graph, how much of it is compatible, the tree of its scopes, its incompatible operations, and all
 * operations by kind.
 */
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { rowsOf } from '../../api/table';
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
import { boxesWith, keyOf, scopeOfKey, scopesOf, wayTo, within, type Scope } from './model';
import { Tree } from './tree';
import './style.css';

type ViewProps = Pick<ToolProps, 'params' | 'setParams'>;

const TREES = [
  { name: 'all', title: 'All scopes' },
  { name: 'invalid', title: 'Incompatible only' },
];

function Incompatible({
  table,
  scope,
  params,
  setParams,
}: { table: PayloadTable; scope: Scope | undefined } & ViewProps): VNode {
  const all = useMemo(() => tableData(table), [table]);
  const data = useMemo(() => within(table, all, scope), [table, all, scope]);
  const initial = useMemo(
    () => ({
      ...PLAIN_VIEW,
      hidden: new Set(['scope', 'fix', ...idleColumns(all).filter((name) => name === 'function')]),
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
      mono={['op', 'name', 'function']}
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
      totals={['n_ops', 'fraction']}
      barToken="--q-0"
      render={render}
    />
  );
}

/** Every kind of trouble once, with its remedy in full. */
function Fixes({ table }: { table: PayloadTable }): VNode {
  return (
    <ul class="tc-fixes">
      {rowsOf(table).map((row) => (
        <li key={`${String(row['kind'])} ${String(row['fix'])}`}>
          <b>{String(row['kind'])}</b>{' '}
          <span class="tc-status bad">{Number(row['n_ops']).toLocaleString('en')}</span>{' '}
          <code>{String(row['ops'])}</code>
          <p>
            <RichText text={String(row['fix'])} />
          </p>
        </li>
      ))}
    </ul>
  );
}

function Choice({
  graphs,
  onChoose,
}: {
  graphs: Record<string, unknown>[];
  onChoose: (name: string) => void;
}): VNode {
  const shown = graphs.find((graph) => graph['is_shown'] === true);
  return (
    <label class="tc-choice">
      Graph
      <select
        class="field"
        value={String(shown?.['graph'] ?? '')}
        onChange={(event) => onChoose(event.currentTarget.value)}
      >
        {graphs.map((graph) => (
          <option key={String(graph['graph'])} value={String(graph['graph'])}>
            {`${String(graph['graph'])} — ${String(graph['kind'])}`}
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
  const {
    graphs: listed,
    scopes: scopeTable,
    incompatible,
    by_op: byOp,
    not_checked: unchecked,
    fixes,
  } = payload.tables;
  const scopes = useMemo(() => scopesOf(scopeTable), [scopeTable]);
  const graphs = useMemo(() => rowsOf(listed), [listed]);
  const shown = graphs.find((graph) => graph['is_shown'] === true);
  const chosen = scopeOfKey(scopes, params['scope']);
  const isInvalidOnly = params['tree'] === 'invalid';
  const scopeTitle = chosen
    ? `in ${chosen.fn && chosen.fn !== chosen.path ? `${chosen.fn}: ` : ''}${chosen.path}`
    : 'in the whole graph';
  const reasons = rowsOf(unchecked).map((row) => ({
    name: String(row['reason']),
    value: Number(row['n_ops']).toLocaleString('en'),
  }));
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
      <Tiles tiles={Object.values(payload.scalars)} />
      <DrawingSection
        {...{ run, hosts, params, setParams, scopes, chosen }}
        graph={String(shown?.['graph'] ?? '')}
        summary={payload}
      />
      <Section
        title="Scopes"
        note="choose a scope to see what is in it, here and in the drawing"
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
      {incompatible && incompatible.n_rows > 0 && (
        <Section
          title={incompatible.title}
          note={incompatible.note || scopeTitle}
          end={chosen ? <WholeGraph onChoose={() => setParams({ scope: undefined }, 'push')} /> : undefined}
        >
          <Incompatible table={incompatible} scope={chosen} params={params} setParams={setParams} />
        </Section>
      )}
      {fixes && fixes.n_rows > 0 && (
        <Section title={fixes.title} note="by kind of operation, in the whole graph">
          <Fixes table={fixes} />
        </Section>
      )}
      {byOp && (
        <Section title={byOp.title} note="of the whole graph">
          <ByOperation table={byOp} />
        </Section>
      )}
      {reasons.length > 0 && (
        <Section title="Why not checked" note="nodes">
          <Facts facts={reasons} />
        </Section>
      )}
      <Section title="About the list">
        <DiagnosticsList items={payload.diagnostics.filter((item) => item.severity === 'info')} />
      </Section>
    </>
  );
}
