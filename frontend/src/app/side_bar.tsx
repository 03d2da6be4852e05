/** Run, tools and hosts at the left; stays open or closed as the user left it. */
import type { VNode } from 'preact';
import { runs, useTools } from '../state/catalog';
import { MONITOR } from '../state/capture';
import { useRunFacts } from '../state/run_facts';
import { run, tool } from '../state/selection';
import { CaptureButton } from './capture/button';
import { HostList } from './host_list';
import { RunPicker } from './run_picker';
import { MonitorLink, ToolList } from './tool_list';

export function SideBar({ isOpen, onToggle }: { isOpen: boolean; onToggle: () => void }): VNode {
  const tools = useTools(run.value).data;
  useRunFacts();
  const info = tools?.tools.find((candidate) => candidate.name === tool.value);
  const isOfSnapshots = runs.value?.runs.find((one) => one.run === run.value)?.state === 'memory';
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
      <ToolList tools={tools?.tools ?? (run.value ? runs.value?.tools : null) ?? []} />
      <MonitorLink />
      <div class="side-foot">
        {tools && tool.value !== MONITOR && (
          <HostList
            all={tools.hosts}
            mode={isOfSnapshots ? 'one' : (info?.hosts ?? 'many')}
            noun={isOfSnapshots ? 'snapshots' : 'hosts'}
          />
        )}
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
