/** Run, tools and hosts at the left; stays open or closed as the user left it. */
import type { VNode } from 'preact';
import { useTools } from '../state/catalog';
import { MONITOR } from '../state/capture';
import { run, tool } from '../state/selection';
import { CaptureButton } from './capture/button';
import { HostList } from './host_list';
import { RunPicker } from './run_picker';
import { MonitorLink, ToolList } from './tool_list';

export function SideBar({ isOpen, onToggle }: { isOpen: boolean; onToggle: () => void }): VNode {
  const tools = useTools(run.value).data;
  const info = tools?.tools.find((candidate) => candidate.name === tool.value);
  if (!isOpen) {
    return (
      <aside class="side closed" aria-label="Run, tools and hosts">
        <button
          type="button"
          class="button plain"
          aria-label="Open the side bar"
          aria-expanded="false"
          data-tip="Open the side bar  \"
          onClick={onToggle}
        >
          »
        </button>
        <CaptureButton isSmall />
      </aside>
    );
  }
  return (
    <aside class="side" aria-label="Run, tools and hosts">
      <RunPicker />
      <CaptureButton />
      {tools && <ToolList tools={tools.tools} />}
      <MonitorLink />
      <div class="side-foot">
        {tools && tool.value !== MONITOR && <HostList all={tools.hosts} mode={info?.hosts ?? 'many'} />}
        <button
          type="button"
          class="button plain small"
          aria-label="Close the side bar"
          aria-expanded="true"
          data-tip="Close the side bar  \"
          onClick={onToggle}
        >
          «
        </button>
      </div>
    </aside>
  );
}
