/** The tools of the run by group; those without data are gray and say why. */
import type { VNode } from 'preact';
import type { ListedTool, ToolInfo } from '../api/types';
import { MONITOR } from '../state/capture';
import { isMonitoring } from '../state/monitor';
import { linkTo, openTool, tool } from '../state/selection';

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

/** A tool of the run, or, while that is being read, of any run. */
function ToolLink({ info }: { info: ListedTool | ToolInfo }): VNode {
  const isOn = info.name === tool.value;
  const missing = 'available' in info && !info.available ? info : null;
  const tip = missing ? [missing.reason, missing.remedy].filter(Boolean).join('\n') : info.summary;
  return (
    <li>
      <a
        href={linkTo({ tool: info.name, params: {} })}
        target="_top"
        class={missing ? 'off' : ''}
        aria-current={isOn ? 'page' : undefined}
        data-tip={tip}
        onClick={opener(info.name, isOn)}
      >
        {info.title}
        {missing && <span class="hidden-text"> (no data: {missing.reason})</span>}
      </a>
    </li>
  );
}

export function ToolList({ tools }: { tools: readonly (ListedTool | ToolInfo)[] }): VNode {
  return (
    <nav aria-label="Tools">
      {groupTools(tools).map(({ group, tools: members }) => (
        <div key={group}>
          <h2>{group}</h2>
          <ul>
            {members.map((info) => (
              <ToolLink key={info.name} info={info} />
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
