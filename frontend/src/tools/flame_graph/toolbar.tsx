/** The choices of the page: threads, steps, order, comparison, colors, search and files. All are in the link. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { fetchFile } from '../../api/client';
import { saveBlob } from '../../base/clipboard';
import { format, plural } from '../../base/units';
import { asApiError } from '../../state/payload';
import { Menu, PopupButton } from '../../widgets/menu';
import { Segments } from '../../widgets/segments';
import type { ToolProps } from '../tool';
import { COLORINGS, type Coloring, type Thread } from './model';
import { selectionParams } from './selection_params';

const COLORING_TITLES: Record<Coloring, string> = {
  family: 'Color by family',
  file: 'Color by file',
  package: 'Color by package',
};

const TREES = [
  { name: 'stacks', title: 'Stacks' },
  { name: 'scopes', title: 'Scopes' },
  { name: 'modules', title: 'Modules' },
];
const ORDERS = [
  { name: 'merged', title: 'Merged' },
  { name: 'time', title: 'In time order' },
];

export interface ToolbarProps extends ToolProps {
  threads: readonly Thread[];
  steps: readonly string[];
  coloring: Coloring;
  hasPackages: boolean;
  trees: readonly string[];
  /** What the search finds, in words; empty: nothing is searched. */
  foundText: string;
}

function Threads({ threads, setParams }: Pick<ToolbarProps, 'threads' | 'setParams'>): VNode {
  const shown = threads.filter(({ isShown }) => isShown);
  const toggle = (thread: Thread): void => {
    const next = threads.filter((one) => (one.row === thread.row ? !one.isShown : one.isShown));
    if (next.length)
      setParams({ threads: next.map(({ tracks }) => tracks).join(','), zoom: undefined }, 'push');
  };
  const title = `Threads: ${shown.length} of ${threads.length}`;
  return (
    <PopupButton label={`${title} ▾`} title={title} side="left">
      <div class="fg-threads">
        <button
          type="button"
          class="button small"
          onClick={() => setParams({ threads: undefined, zoom: undefined }, 'push')}
        >
          Default threads
        </button>
        {threads.map((thread, i) => (
          <div key={thread.row}>
            {thread.section !== threads[i - 1]?.section && <h3>{thread.section}</h3>}
            <label>
              <input type="checkbox" checked={thread.isShown} onChange={() => toggle(thread)} />
              <span>
                {thread.name}
                {thread.nThreads > 1 && <small> {plural(thread.nThreads, 'thread')}</small>}
              </span>
              <small>{format(thread.busyFraction, 'fraction')}</small>
            </label>
          </div>
        ))}
      </div>
    </PopupButton>
  );
}

function Files(props: ToolbarProps): VNode {
  const { run, hosts, info, params } = props;
  const [state, setState] = useState('');
  const save = async (form: 'speedscope' | 'collapsed', ending: string): Promise<void> => {
    setState('Making the file…');
    try {
      const order: Record<string, string> = params['order'] === 'time' ? { order: 'time' } : {};
      const mode: Record<string, string> = params['mode'] ? { mode: params['mode'] } : {};
      const chosen = { ...selectionParams(info, params), ...order, ...mode };
      const blob = await fetchFile({ tool: info.name, run, hosts, params: chosen }, form);
      saveBlob(blob, `${run.replace(/[^\w.-]+/g, '_')}_flame_graph.${ending}`);
      setState('');
    } catch (error) {
      const { message, remedy } = asApiError(error);
      setState(`${message} ${remedy}`);
    }
  };
  return (
    <>
      {state && <span role="status">{state}</span>}
      <Menu
        label="Save stacks ▾"
        title="Save stacks for other programs"
        items={[
          { label: 'speedscope', note: 'JSON', act: () => void save('speedscope', 'speedscope.json') },
          { label: 'Collapsed stacks', note: 'text', act: () => void save('collapsed', 'collapsed.txt') },
        ]}
      />
    </>
  );
}

function Compare({ steps, params, setParams }: ToolbarProps): VNode {
  const against = params['against'] ?? '';
  const known = ['', 'all', 'median', 'slowest'];
  return (
    <select
      class="field"
      aria-label="Compare with"
      value={against}
      disabled={params['order'] === 'time'}
      onChange={(event) =>
        setParams({ against: event.currentTarget.value || undefined, zoom: undefined }, 'push')
      }
    >
      <option value="">Compare with…</option>
      <option value="all">Compare with all steps</option>
      <option value="median">Compare with the median step</option>
      <option value="slowest">Compare with the slowest step</option>
      {!known.includes(against) && <option value={against}>Compare with step {against}</option>}
      {steps
        .filter((name) => name !== against)
        .slice(0, 200)
        .map((name) => (
          <option key={name} value={name}>
            Compare with step {name}
          </option>
        ))}
    </select>
  );
}

export function Toolbar(props: ToolbarProps): VNode {
  const { threads, steps, params, setParams, coloring, hasPackages, trees, foundText } = props;
  const chosen = params['steps'] ?? 'all';
  const mode = params['mode'] ?? 'stacks';
  const order = params['order'] === 'time' && mode === 'stacks' ? 'time' : 'merged';
  const choices = [
    { name: 'all', title: steps.length > 1 ? `All ${steps.length}` : 'The step' },
    { name: 'median', title: 'Median' },
    { name: 'slowest', title: 'Slowest' },
    { name: 'trace', title: 'Whole trace' },
  ]
    .filter(({ name }) => order === 'merged' || (name !== 'all' && name !== 'trace'))
    .filter(({ name }) => steps.length > 1 || (name !== 'median' && name !== 'slowest'));
  const isOne = !['all', 'median', 'slowest', 'trace'].includes(chosen);
  const active = order === 'time' && chosen === 'all' ? 'median' : chosen;
  return (
    <div class="fg-tools">
      {trees.length > 1 && (
        <Segments
          label="Tree"
          choices={TREES.filter(({ name }) => trees.includes(name))}
          chosen={mode}
          onChoose={(name) =>
            setParams(
              { mode: name === 'stacks' ? undefined : name, zoom: undefined, order: undefined },
              'push',
            )
          }
        />
      )}
      {mode === 'stacks' && <Threads threads={threads} setParams={setParams} />}
      {steps.length > 0 && (
        <Segments
          label="Steps"
          choices={isOne ? [...choices, { name: chosen, title: `Step ${chosen}` }] : choices}
          chosen={active}
          onChoose={(name) =>
            setParams({ steps: name === 'all' ? undefined : name, zoom: undefined }, 'push')
          }
        />
      )}
      {mode === 'stacks' && (
        <Segments
          label="Order"
          choices={ORDERS}
          chosen={order}
          onChoose={(name) =>
            setParams(
              { order: name === 'time' ? 'time' : undefined, zoom: undefined, against: undefined },
              'push',
            )
          }
        />
      )}
      {steps.length > 1 && <Compare {...props} />}
      <select
        class="field"
        aria-label="Color by"
        value={coloring}
        onChange={(event) => {
          const { value } = event.currentTarget;
          setParams({ color: value === 'family' ? undefined : value }, 'push');
        }}
      >
        {COLORINGS.filter((name) => name !== 'package' || hasPackages).map((name) => (
          <option key={name} value={name}>
            {COLORING_TITLES[name]}
          </option>
        ))}
      </select>
      <input
        class="field"
        type="search"
        data-key="search"
        aria-label="Search functions"
        placeholder="Search functions  /"
        value={params['q'] ?? ''}
        onInput={(event) => setParams({ q: event.currentTarget.value || undefined }, 'replace')}
      />
      {foundText && (
        <span class="muted" role="status">
          {foundText}
        </span>
      )}
      <span class="fg-end">
        <Files {...props} />
      </span>
    </div>
  );
}
