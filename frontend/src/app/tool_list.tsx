/** The tools of the run by group; those without data are gray and say why. */
import type { VNode } from 'preact';
import type { ListedTool, ToolInfo } from '../api/types';
import { MONITOR } from '../state/capture';
import { isMonitoring } from '../state/monitor';
import { badges } from '../state/run_facts';
import { linkTo, openTool, tool } from '../state/selection';

/** Whether a tool has no data in the run. */
function isMissing(info: ListedTool | ToolInfo): info is ToolInfo {
  return 'available' in info && !info.available;
}

/** Consecutive tools of one group, in the server's order. */
export function groupTools<T extends ListedTool>(tools: readonly T[]): { group: string; tools: T[] }[] {
  const groups: { group: string; tools: T[] }[] = [];
  for (const info of tools) {
    const group = groups.find((candidate) => candidate.group === info.group);
    if (group) group.tools.push(info);
    else groups.push({ group: info.group, tools: [info] });
  }
  return groups;
}

/** Opens a page within this window, unless a modifier key requests another tab. */
function opener(name: string, isOn: boolean): (event: MouseEvent) => void {
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    if (!isOn) openTool(name);
  };
}

/** Moves the focus from link to link, so that those without data are one stop of the Tab key. */
function onArrow(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !(event.currentTarget instanceof HTMLElement)) return;
  const links = [...event.currentTarget.querySelectorAll('a')];
  const at = links.indexOf(event.target as HTMLAnchorElement);
  const next = at < 0 ? undefined : links[at + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function Aside({ info }: { info: ListedTool | ToolInfo }): VNode | null {
  if (isMissing(info))
    return (
      <>
        <small aria-hidden="true">{info.short_reason || '–'}</small>
        <span class="hidden-text"> (no data: {info.reason})</span>
      </>
    );
  const badge = badges.value[info.name];
  return badge ? <small class="badge">{badge}</small> : null;
}

/** A tool of the run, or, while that is being read, of any run. */
function ToolLink({ info, isStop }: { info: ListedTool | ToolInfo; isStop: boolean }): VNode {
  const isOn = info.name === tool.value;
  const missing = isMissing(info) ? info : null;
  const tip = missing ? [missing.reason, missing.remedy].filter(Boolean).join('\n') : info.summary;
  return (
    <li>
      <a
        href={linkTo({ tool: info.name, params: {} })}
        target="_top"
        class={missing ? 'off' : ''}
        tabIndex={isStop ? undefined : -1}
        aria-current={isOn ? 'page' : undefined}
        data-tip={tip}
        onClick={opener(info.name, isOn)}
      >
        {info.title}
        <Aside info={info} />
      </a>
    </li>
  );
}

export function ToolList({ tools }: { tools: readonly (ListedTool | ToolInfo)[] }): VNode {
  const firstOff = tools.find(isMissing);
  return (
    <nav aria-label="Tools" onKeyDown={onArrow}>
      {groupTools(tools).map(({ group, tools: members }) => (
        <div key={group}>
          <h2>{group}</h2>
          <ul>
            {members.map((info) => (
              <ToolLink
                key={info.name}
                info={info}
                isStop={!isMissing(info) || info === firstOff || info.name === tool.value}
              />
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

/** The one page that belongs to no run: a job while it runs. */
export function MonitorLink(): VNode {
  const isOn = tool.value === MONITOR;
  return (
    <nav aria-label="Live">
      <div>
        <h2>Live</h2>
        <ul>
          <li>
            <a
              href={linkTo({ tool: MONITOR, params: {} })}
              target="_top"
              aria-current={isOn ? 'page' : undefined}
              data-tip="Step time, idle and input share of a job while it runs"
              onClick={opener(MONITOR, isOn)}
            >
              Monitor a running job
              {isMonitoring.value && <small class="live"> on</small>}
            </a>
          </li>
        </ul>
      </div>
    </nav>
  );
}
