/**
 * The graph viewer from top to bottom: program, search and options; the graph or the text; the hottest
 * instructions; computations.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { dataUrl } from '../../api/client';
import { readIfAny, readTable, type ColumnOf } from '../../api/declared';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { saveUrl } from '../../base/clipboard';
import { plural } from '../../base/units';
import { Menu } from '../../widgets/menu';
import { Segments } from '../../widgets/segments';
import { Section } from '../../widgets/summary';
import { PLAIN_VIEW } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { idleColumns, inOrder, tableData, type ToolProps } from '../tool';
import { Drawer } from './drawer';
import { Drawing } from './drawing';
import { Finder } from './finder';
import {
  chosenOf,
  classesOf,
  classToken,
  graphOf,
  programsOf,
  TABLES,
  toggled,
  type Chosen,
  type Graph,
} from './model';
import { ProgramText } from './text';
import './style.css';

type LinkProps = Pick<ToolProps, 'run' | 'hosts' | 'params' | 'setParams'>;

const RADII = ['1', '2', '3', '5', '8'];
const DEFAULT_RADIUS = '2';
const TABS = [
  { name: 'graph', title: 'Graph' },
  { name: 'short', title: 'Text' },
  { name: 'long', title: 'Text with metadata' },
];
/** Parameters that the files of the drawn graph take. */
const DRAWN = ['radius', 'fusions', 'open', 'most_nodes'];
const MONO: readonly (ColumnOf<typeof TABLES.hot> | ColumnOf<typeof TABLES.computations>)[] = [
  'name',
  'shape',
  'op_name',
  'computation',
  'callers',
];

/** What an instruction is, its time and where it comes from first. */
const ORDER: readonly ColumnOf<typeof TABLES.hot>[] = [
  'name',
  'opcode',
  'time_ps',
  'time_fraction',
  'op_name',
  'n_occurrences',
  'shape',
];

function Files({ chosen, run, hosts, params }: { chosen: Chosen } & Omit<LinkProps, 'setParams'>): VNode {
  const { program, op } = chosen;
  const drawn = Object.fromEntries(Object.entries(params).filter(([name]) => DRAWN.includes(name)));
  const save = (format: string, formatParams: Record<string, string>): void =>
    saveUrl(dataUrl({ tool: 'graph_viewer', run, hosts, params: { program, ...formatParams, format } }), '');
  const items = [
    { label: 'The program as text', note: 'with metadata', act: () => save('hlo', { style: 'long' }) },
    { label: 'The program as short text', note: 'XLA reads it', act: () => save('hlo', { style: 'short' }) },
    { label: 'The program as proto', note: 'HloProto', act: () => save('proto', {}) },
    { label: 'This graph as DOT', note: 'Graphviz', act: () => save('dot', { ...drawn, op }) },
    { label: 'This graph as JSON', act: () => save('graph', { ...drawn, op }) },
  ];
  return <Menu label="Save" title="Save the program or the graph" items={items} />;
}

type ControlProps = Pick<ToolProps, 'params' | 'setParams'>;

function ProgramSelect({
  payload,
  chosen,
  setParams,
}: { payload: Payload; chosen: Chosen } & Pick<ToolProps, 'setParams'>): VNode {
  const programs = useMemo(() => programsOf(payload), [payload]);
  const choose = (program: string): void =>
    setParams({ program, op: undefined, node: undefined, view: undefined, open: undefined }, 'push');
  return (
    <label>
      Program{' '}
      <select class="field" value={chosen.program} onChange={(event) => choose(event.currentTarget.value)}>
        {programs.map(({ title, label }) => (
          <option key={title} value={title}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Controls of the graph only: its radius, and what it shows of fusions and instructions. */
function GraphControls({ params, setParams }: ControlProps): VNode {
  const radius = params['radius'] ?? DEFAULT_RADIUS;
  const radii = RADII.includes(radius) ? RADII : [...RADII, radius].sort((a, b) => Number(a) - Number(b));
  const chooseRadius = (value: string): void =>
    setParams({ radius: value === DEFAULT_RADIUS ? undefined : value, view: undefined }, 'push');
  const openFusions = (isOn: boolean): void =>
    setParams({ fusions: isOn ? 'opened' : undefined, view: undefined }, 'push');
  return (
    <>
      <label>
        Hops{' '}
        <select class="field" value={radius} onChange={(event) => chooseRadius(event.currentTarget.value)}>
          {radii.map((value) => (
            <option key={value} value={value}>
              {value}
            </option>
          ))}
        </select>
      </label>
      <label class="switch" data-tip="Draw each fusion with the instructions in it">
        <input
          type="checkbox"
          checked={params['fusions'] === 'opened'}
          onChange={(event) => openFusions(event.currentTarget.checked)}
        />
        Open fusions
      </label>
      <label class="switch" data-tip="Framework op and source of each instruction">
        <input
          type="checkbox"
          checked={params['metadata'] !== 'false'}
          onChange={(event) =>
            setParams({ metadata: event.currentTarget.checked ? undefined : 'false' }, 'push')
          }
        />
        Metadata
      </label>
    </>
  );
}

function Toolbar({
  payload,
  chosen,
  tab,
  ...props
}: { payload: Payload; chosen: Chosen; tab: string } & LinkProps): VNode {
  const { run, hosts, params, setParams } = props;
  const walk = (op: string): void =>
    setParams({ program: chosen.program, op, node: undefined, view: undefined }, 'push');
  return (
    <div class="gv-bar">
      <ProgramSelect payload={payload} chosen={chosen} setParams={setParams} />
      <Finder run={run} hosts={hosts} program={chosen.program} onWalk={walk} />
      <Segments
        label="Show as"
        choices={TABS}
        chosen={tab}
        onChoose={(name) => setParams({ shown: name === 'graph' ? undefined : name }, 'push')}
      />
      {tab === 'graph' && <GraphControls params={params} setParams={setParams} />}
      <span class="gv-end">
        <Files chosen={chosen} run={run} hosts={hosts} params={params} />
      </span>
    </div>
  );
}

function Where({
  chosen,
  graph,
  onWalk,
}: {
  chosen: Chosen;
  graph: Graph;
  onWalk: (name: string) => void;
}): VNode {
  return (
    <div class="gv-foot">
      <ul class="gv-key" aria-label="Colors">
        {classesOf(graph.nodes).map((name) => (
          <li key={name}>
            <span class="dot" style={{ background: `var(${classToken(name)})` }} />
            {name}
          </li>
        ))}
      </ul>
      <p class="muted">
        In computation <code>{chosen.computation}</code>
        {chosen.computation === chosen.entry ? ', the entry' : ''}
        {chosen.callers.length > 0 && ', run by '}
        {chosen.callers.slice(0, 5).map((name) => (
          <button key={name} type="button" class="text-link" onClick={() => onWalk(name)}>
            {name}
          </button>
        ))}
        {graph.nCut > 0 &&
          `. ${plural(graph.nCut, 'instruction')} more within this distance: reduce hops, or walk on.`}
      </p>
    </div>
  );
}

/** Rows of a declared table of instructions or computations. */
interface NamedRows {
  readonly table: PayloadTable;
  text(name: 'name'): (row: number) => string;
}

function List({
  rows,
  onWalk,
  title,
  note,
}: {
  rows: NamedRows;
  onWalk: (name: string) => void;
  title: string;
  note: string;
}): VNode | null {
  const { table } = rows;
  const nameAt = rows.text('name');
  const data = useMemo(() => inOrder(tableData(table), ORDER), [table]);
  const view = useMemo(
    () => ({ ...PLAIN_VIEW, hidden: new Set(idleColumns(data).filter((name) => name !== 'name')) }),
    [data],
  );
  if (!table.n_rows) return null;
  return (
    <Section title={title} note={table.note || note}>
      <Table
        data={data}
        label={title}
        view={view}
        onRow={(row) => onWalk(nameAt(row))}
        rowsInFull={12}
        maxHeight="380px"
        mono={MONO}
        barToken="--q-0"
      />
    </Section>
  );
}

export function GraphViewerView({ payload, ...props }: { payload: Payload } & LinkProps): VNode {
  const { run, hosts, params, setParams } = props;
  const graph = useMemo(() => graphOf(payload), [payload]);
  const chosen = useMemo(() => chosenOf(payload), [payload]);
  const hot = readIfAny(payload, TABLES.hot);
  const tab = TABS.some(({ name }) => name === params['shown']) ? (params['shown'] as string) : 'graph';
  const walk = (op: string): void =>
    setParams({ program: chosen.program, op, node: undefined, view: undefined, shown: undefined }, 'push');
  const node = graph.nodes.find(({ name }) => name === (params['node'] ?? '')) ?? null;
  const choose = (id: number | null): void =>
    setParams({ node: graph.nodes.find((candidate) => candidate.id === id)?.name }, 'push');
  const open = (name: string): void =>
    setParams({ open: toggled(params['open'], name), view: undefined }, 'push');
  return (
    <>
      <Toolbar payload={payload} chosen={chosen} tab={tab} {...props} />
      {tab === 'graph' ? (
        <div class={node ? 'gv-body has-drawer' : 'gv-body'}>
          <Section
            title={`Around ${chosen.op}`}
            tip="Instructions around the one in the middle; values flow downward"
            note={
              `${plural(graph.nodes.length, 'instruction')}; values flow downward; ` +
              'click for details, double-click to walk'
            }
          >
            <Drawing
              key={`${chosen.program}|${chosen.op}|${params['radius'] ?? ''}|${params['fusions'] ?? ''}|${params['open'] ?? ''}`}
              graph={graph}
              chosen={node?.id ?? null}
              onChoose={choose}
              onWalk={walk}
              view={params['view']}
              onView={(view) => setParams({ view }, 'replace')}
            />
            <Where chosen={chosen} graph={graph} onWalk={walk} />
          </Section>
          {node && (
            <Drawer
              node={node}
              program={chosen.program}
              isCenter={node.id === graph.center}
              isOpened={node.isFrame}
              onWalk={walk}
              onOpen={open}
              onText={(op) => setParams({ op, shown: 'short', node: undefined }, 'push')}
              onClose={() => choose(null)}
            />
          )}
        </div>
      ) : (
        <ProgramText
          run={run}
          hosts={hosts}
          program={chosen.program}
          op={chosen.op}
          style={tab === 'long' ? 'long' : 'short'}
        />
      )}
      {hot ? (
        <List rows={hot} onWalk={walk} title="Hottest instructions" note="click one to walk there" />
      ) : (
        <Section title="Hottest instructions">
          <p class="muted">Reading event times…</p>
        </Section>
      )}
      <List
        rows={readTable(payload, TABLES.computations)}
        onWalk={walk}
        title="Computations"
        note="click one to walk to its result"
      />
    </>
  );
}
