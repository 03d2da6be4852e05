/**
 * Controls, then the tree or the flame; next to it the card of the chosen operation. All choices are in the
 * link.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readNumber, readTable, readTiles } from '../../api/declared';
import type { Payload } from '../../api/types';
import { Segments } from '../../widgets/segments';
import { Section, Tiles } from '../../widgets/summary';
import { OpCard } from '../op_card';
import type { ToolProps } from '../tool';
import { Flame } from './flame';
import {
  coloringOf,
  fusionsToOpen,
  nodesOf,
  SCALARS,
  TABLES,
  type Coloring,
  type OpNode,
  withInside,
} from './model';
import { openAtFirst, parseOpen, rowsOfTree, SORTS, type SortName, type TreeView } from './rows';
import { useInside } from './inside';
import './style.css';
import { Tree } from './tree';
import { Treemap } from './treemap';

const GROUPINGS = [
  { name: 'program', title: 'Program' },
  { name: 'category', title: 'Category' },
  { name: 'provenance', title: 'Framework' },
];
const VIEWS = [
  { name: 'tree', title: 'Tree' },
  { name: 'flame', title: 'Flame' },
  { name: 'treemap', title: 'Treemap' },
];
const COLOURS = [
  { name: 'flops', title: 'FLOPS' },
  { name: 'hbm', title: 'HBM' },
];
type Shape = 'tree' | 'flame' | 'treemap';
const TOP = 20;
const MOST = 100;
/** Of a parent, with the switch "Top 90%". */
const COVER = 0.9;

function viewOf(params: ToolProps['params'], initial: ReadonlySet<number>): TreeView {
  const sort = (params['sort'] ?? '-time').replace(/^-/, '');
  return {
    open: parseOpen(params['open'], initial),
    query: params['q'] ?? '',
    sort: sort in SORTS ? (sort as SortName) : 'time',
    ascending: params['sort'] !== undefined && !params['sort'].startsWith('-'),
    top: Math.max(1, Math.min(MOST, Number(params['top'] ?? TOP) || TOP)),
    cover: params['cover'] === '90' ? COVER : null,
  };
}

/** How many children of a node are shown: a number, or as many as make up most of its time. */
function Top({ view, setParams }: { view: TreeView } & Pick<ToolProps, 'setParams'>): VNode {
  return (
    <>
      <label
        class="switch"
        data-tip="Show only the largest children, which make up 90% of their node's (wasted) time"
      >
        <input
          type="checkbox"
          checked={view.cover !== null}
          onChange={() => setParams({ cover: view.cover === null ? '90' : undefined }, 'push')}
        />
        Top 90%
      </label>
      <label>
        Top {view.top}
        <input
          type="range"
          disabled={view.cover !== null}
          min={1}
          max={MOST}
          value={view.top}
          aria-label="Children of a node"
          onInput={(event) =>
            setParams(
              { top: event.currentTarget.value === String(TOP) ? undefined : event.currentTarget.value },
              'replace',
            )
          }
        />
      </label>
    </>
  );
}

function Controls({
  params,
  setParams,
  view,
  shape,
  canIdle,
  hasPeaks,
  legend,
}: Pick<ToolProps, 'params' | 'setParams'> & {
  view: TreeView;
  shape: Shape;
  canIdle: boolean;
  hasPeaks: boolean;
  legend: Coloring['legend'];
}): VNode {
  const without = { open: undefined, zoom: undefined };
  const hasIdle = params['idle'] !== 'false';
  return (
    <div class="op-tools">
      <Segments
        label="Group by"
        choices={GROUPINGS}
        chosen={params['group_by'] ?? 'program'}
        onChoose={(name) =>
          setParams({ ...without, group_by: name === 'program' ? undefined : name }, 'push')
        }
      />
      <Segments
        label="View"
        choices={VIEWS}
        chosen={shape}
        onChoose={(name) => setParams({ view: name === 'tree' ? undefined : name }, 'push')}
      />
      {canIdle && (
        <label class="switch">
          <input
            type="checkbox"
            checked={hasIdle}
            onChange={() => setParams({ ...without, idle: hasIdle ? 'false' : undefined }, 'push')}
          />
          Include idle
        </label>
      )}
      {shape !== 'tree' && hasPeaks && (
        <Segments
          label="Color by"
          choices={COLOURS}
          chosen={params['colour'] ?? 'flops'}
          onChoose={(name) => setParams({ colour: name === 'flops' ? undefined : name }, 'push')}
        />
      )}
      {shape === 'tree' && (
        <>
          <Top {...{ view, setParams }} />
          <input
            class="field"
            type="search"
            data-key="search"
            aria-label="Search in the op profile"
            placeholder="Search  /"
            value={view.query}
            onInput={(event) => setParams({ q: event.currentTarget.value || undefined }, 'replace')}
          />
        </>
      )}
      <span class="op-legend" aria-label="Colors">
        {legend.map(({ title, token }) => (
          <span key={title}>
            <span class="dot" style={{ background: `var(${token})` }} />
            {title}
          </span>
        ))}
      </span>
    </div>
  );
}

export function OpProfileView({
  payload,
  run,
  hosts,
  params,
  setParams,
}: { payload: Payload } & ToolProps): VNode {
  const sentNodes = useMemo(() => nodesOf(payload), [payload]);
  const initial = useMemo(() => openAtFirst(sentNodes), [sentNodes]);
  const view = viewOf(params, initial);
  const shape = params['view'] === 'flame' || params['view'] === 'treemap' ? params['view'] : 'tree';
  const { program = '', op } = params;
  const isChosen = (node: OpNode): boolean =>
    node.kind === 'op' && node.name === op && (!program || node.program === program);
  const inside = useInside(
    fusionsToOpen(sentNodes, [
      ...view.open,
      Number(params['zoom'] ?? 0),
      ...(op ? sentNodes.filter(isChosen).map(({ row }) => row) : []),
    ]),
    sentNodes,
    { run, hosts },
  );
  const nodes = useMemo(() => withInside(sentNodes, inside), [sentNodes, inside]);
  const rows = useMemo(() => rowsOfTree(nodes, view), [nodes, params]);
  const choose = (node: OpNode): void =>
    setParams(
      isChosen(node) ? { program: undefined, op: undefined } : { program: node.program, op: node.name },
      'push',
    );
  const toggle = (node: OpNode): void => {
    const open = new Set(view.open);
    if (!open.delete(node.row)) open.add(node.row);
    setParams({ open: [...open].sort((a, b) => a - b).join('.') || '0' }, 'replace');
  };
  const sort = (name: SortName): void => {
    const descending = view.sort === name ? view.ascending : name !== 'name';
    setParams({ sort: name === 'time' && descending ? undefined : (descending ? '-' : '') + name }, 'push');
  };
  const hasPeaks = nodes.some(({ flopsUsed }) => flopsUsed !== null);
  const coloring = useMemo(
    () => coloringOf(nodes, params['colour'] === 'hbm' ? 'hbm' : 'flops'),
    [nodes, params['colour']],
  );
  const boxes = {
    ...{ nodes, chosen: isChosen, onChoose: choose, zoomed: Number(params['zoom'] ?? 0) || 0 },
    ...{ coloring, onZoom: (row: number) => setParams({ zoom: row ? String(row) : undefined }, 'push') },
  };
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      <div class={op ? 'op-page has-card' : 'op-page'}>
        <div>
          <Section
            title="Where the time goes"
            tip="Self time of programs, categories and operations as a tree"
            note={readTable(payload, TABLES.nodes).note || 'self time, summed over devices'}
          >
            <Controls
              params={params}
              setParams={setParams}
              view={view}
              shape={shape}
              hasPeaks={hasPeaks}
              legend={hasPeaks || shape !== 'tree' ? coloring.legend : []}
              canIdle={readNumber(payload, SCALARS.idle_fraction) !== null}
            />
            {shape === 'flame' ? (
              <Flame {...boxes} />
            ) : shape === 'treemap' ? (
              <Treemap {...boxes} />
            ) : (
              <Tree
                rows={rows}
                view={view}
                chosen={isChosen}
                hasPeaks={hasPeaks}
                hasWasted={nodes.some(({ wastedPs }) => wastedPs !== null)}
                hasOnChip={nodes.some(
                  ({ onChipRead, onChipWrite }) => (onChipRead ?? 0) > 0 || (onChipWrite ?? 0) > 0,
                )}
                {...{ onToggle: toggle, onChoose: choose, onSort: sort }}
              />
            )}
            {shape === 'tree' && !rows.length && <p class="muted">No match.</p>}
          </Section>
        </div>
        {op && (
          <OpCard
            run={run}
            hosts={hosts}
            program={program}
            op={op}
            onClose={() => setParams({ program: undefined, op: undefined }, 'push')}
          />
        )}
      </div>
    </>
  );
}
