/** The chosen tool of the chosen run; where a link names something missing, the alternatives. */
import type { VNode } from 'preact';
import type { RunsAnswer, ToolInfo, ToolsAnswer } from '../api/types';
import { dateText } from '../base/units';
import { loadRuns, useTools } from '../state/catalog';
import { asApiError } from '../state/payload';
import { choose, hosts, openTool, run, setToolParams, tool, toolParams } from '../state/selection';
import { Reading } from '../tools/reading';
import type { ToolView } from '../app';
import { Failed, Loading, Message } from '../widgets/states';
import { RichText } from '../widgets/rich_text';
import { Header } from './header';
import { useLazy } from './lazy';

const LISTED_RUNS = 12;

export interface PageProps {
  answer: RunsAnswer;
  viewOf: (tool: string) => ToolView;
  onHelp: () => void;
  isHelpOpen: boolean;
}

interface Choice {
  name: string;
  note?: string;
  choose: () => void;
}

/** What a link named that does not exist, and what does exist. */
function Gone({ title, why, choices }: { title: string; why: string; choices: readonly Choice[] }): VNode {
  return (
    <Message failed title={title}>
      <p>{why}</p>
      <ul class="choices">
        {choices.map(({ name, note, choose: act }) => (
          <li key={name}>
            <button type="button" class="text-link" onClick={act}>
              {name}
            </button>
            {note && <small class="muted">{note}</small>}
          </li>
        ))}
      </ul>
    </Message>
  );
}

function RunGone({ answer }: { answer: RunsAnswer }): VNode {
  const choices = answer.runs.slice(0, LISTED_RUNS).map((info) => ({
    name: info.run,
    note: dateText(info.captured_at),
    choose: () => choose({ run: info.run, hosts: [] }),
  }));
  const more = answer.runs.length > LISTED_RUNS ? ' (more are in the list at the left)' : '';
  const why = choices.length
    ? `It may have been deleted or renamed, or TensorBoard runs on another directory. The newest runs that are here${more}:`
    : 'TensorBoard runs on a directory without any profile.';
  return (
    <>
      <Gone title={`There is no run "${run.value}".`} why={why} choices={choices} />
      <button type="button" class="button look-again" onClick={() => void loadRuns(true)}>
        Look again
      </button>
    </>
  );
}

function ToolGone({ tools }: { tools: readonly ToolInfo[] }): VNode {
  const choices = tools
    .filter((info) => info.available)
    .map((info) => ({ name: info.title, note: info.summary, choose: () => openTool(info.name) }));
  return (
    <Gone
      title={`There is no tool "${tool.value}".`}
      why="The link may come from another version. Tools that can show this run:"
      choices={choices}
    />
  );
}

function HostsGone({ missing, tools }: { missing: readonly string[]; tools: ToolsAnswer }): VNode {
  const all = { name: 'All hosts', choose: () => choose({ hosts: [] }) };
  const choices = [
    all,
    ...tools.hosts.map(({ host }) => ({ name: host, choose: () => choose({ hosts: [host] }) })),
  ];
  return (
    <Gone
      title={`This run has no host ${missing.map((host) => `"${host}"`).join(', ')}.`}
      why="Hosts of this run:"
      choices={choices}
    />
  );
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function Unavailable({ info }: { info: ToolInfo }): VNode {
  return (
    <Message title={capitalized(info.reason) || 'This tool has nothing to show for this run.'}>
      {info.remedy && (
        <p>
          <RichText text={info.remedy} />
        </p>
      )}
    </Message>
  );
}

function ToolBody({ info, view }: { info: ToolInfo; view: ToolView }): VNode {
  const { part: Component, error, retry } = useLazy(view.load);
  if (error)
    return (
      <Failed
        what={info.title}
        kind="page"
        message="This page could not be loaded."
        remedy={`Reload TensorBoard. (${asApiError(error).message})`}
        onRetry={retry}
      />
    );
  if (!Component) return <Loading what={`Opening ${info.title}`} />;
  const chosen = info.hosts === 'one' ? hosts.value.slice(0, 1) : [...hosts.value];
  return (
    <Component
      key={`${run.value}\n${info.name}`}
      run={run.value}
      hosts={chosen}
      params={toolParams.value}
      setParams={(change, how) => setToolParams(change, { replace: how === 'replace' })}
      info={info}
    />
  );
}

/** States of runs that some page shows. */
const OPENABLE: ReadonlySet<string> = new Set(['ok', 'hlo', 'memory', 'legacy']);

function RunBody({ tools, viewOf }: { tools: ToolsAnswer; viewOf: PageProps['viewOf'] }): VNode {
  if (!OPENABLE.has(tools.state))
    return <Message title={tools.message || 'There is no trace in this run.'} />;
  if (!tool.value) return <Loading what="Opening" />;
  const info = tools.tools.find((candidate) => candidate.name === tool.value);
  const view = info && viewOf(info.name);
  if (info && !info.available && tools.failure)
    return <Failed what={`Run ${tools.run}`} {...tools.failure} onRetry={() => void loadRuns(true)} />;
  if (info && !info.available) return <Unavailable info={info} />;
  if (!info || !view) return <ToolGone tools={tools.tools} />;
  const hostNames = new Set(tools.hosts.map(({ host }) => host));
  const missing = hosts.value.filter((host) => !hostNames.has(host));
  // If only some of the hosts are missing, the server shows the others and names the missing ones.
  if (missing.length && missing.length === hosts.value.length && !missing.includes('ALL_HOSTS'))
    return <HostsGone missing={missing} tools={tools} />;
  return <ToolBody info={info} view={view} />;
}

export function Page({ answer, viewOf, onHelp, isHelpOpen }: PageProps): VNode {
  const { data: tools, error, retry } = useTools(run.value);
  const isKnown = answer.runs.some((candidate) => candidate.run === run.value);
  const info = tools?.tools.find((candidate) => candidate.name === tool.value);
  const body = (): VNode => {
    if (run.value && (error?.status === 404 || (!isKnown && error))) return <RunGone answer={answer} />;
    if (error)
      return (
        <Failed
          what={`Run ${run.value}`}
          kind={error.kind}
          message={error.message}
          remedy={error.remedy}
          details={error.details}
          onRetry={retry}
        />
      );
    if (!run.value || !tools) return <Reading run={run.value} what="Opening the run" />;
    return <RunBody tools={tools} viewOf={viewOf} />;
  };
  return (
    <main class={info && viewOf(info.name).fills ? 'page fills' : 'page'}>
      {info && <Header info={info} onHelp={onHelp} isHelpOpen={isHelpOpen} />}
      {body()}
    </main>
  );
}
