/** The tools of the run by group; those without data are grey and say why. */
import type { VNode } from 'preact';
import type { ToolInfo } from '../api/types';
import { linkTo, openTool, tool } from '../state/selection';

/** Consecutive tools of one group, in the server's order. */
export function groupTools(tools: readonly ToolInfo[]): { group: string; tools: ToolInfo[] }[] {
  const groups: { group: string; tools: ToolInfo[] }[] = [];
  for (const info of tools) {
    const group = groups.find((candidate) => candidate.group === info.group);
    if (group) group.tools.push(info);
    else groups.push({ group: info.group, tools: [info] });
  }
  return groups;
}

function ToolLink({ info }: { info: ToolInfo }): VNode {
  const isOn = info.name === tool.value;
  const open = (event: MouseEvent): void => {
    // With a modifier the browser opens the link in another tab.
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    if (!isOn) openTool(info.name);
  };
  const tip = info.available ? info.summary : [info.reason, info.remedy].filter(Boolean).join('\n');
  return (
    <li>
      <a href={linkTo({ tool: info.name, params: {} })} target="_top" class={info.available ? '' : 'off'} aria-current={isOn ? 'page' : undefined} data-tip={tip} onClick={open}>
        {info.title}
        {!info.available && <span class="hidden-text"> (no data: {info.reason})</span>}
      </a>
    </li>
  );
}

export function ToolList({ tools }: { tools: readonly ToolInfo[] }): VNode {
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
