/**
 * The whole page: side bar, and next to it the chosen tool, or the reason why there is none. TOOL_VIEWS lists
 * every tool's view.
 */
import type { ComponentType, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { HelpSlot } from './app/help/slot';
import { Page } from './app/page';
import { SideBar } from './app/side_bar';
import { useTitle } from './app/title';
import './app/style.css';
import { CaptureDialogSlot } from './app/capture/button';
import { MonitorSlot } from './app/monitor/slot';
import { NoRuns } from './app/no_runs';
import { defaultRun, loadRuns, runs, runsError, toolNames, useTools } from './state/catalog';
import { MONITOR } from './state/capture';
import { isTyping } from './state/keys';
import { choose, run, tool } from './state/selection';
import type { ToolProps } from './tools/tool';
import { askAhead } from './tools/trace_viewer/data/ahead';
import { searchField } from './widgets/search_key';
import { Failed, Loading } from './widgets/states';

export interface ToolView {
  load: () => Promise<ComponentType<ToolProps>>;
  /** The tool fills the window and scrolls within itself. */
  fills?: boolean;
  /** Requests the tool's first answer before the tool's code has loaded. */
  ahead?: (run: string, hosts: readonly string[], nHosts: number) => void;
}

/** Views of tools; each is a chunk, loaded when it is first shown. A tool without one has the generic page. */
const TOOL_VIEWS: Readonly<Record<string, ToolView>> = {
  overview_page: { load: () => import('./tools/overview_page/index').then((module) => module.OverviewPage) },
  inference_profile: {
    load: () => import('./tools/inference_profile/index').then((module) => module.Inference),
  },
  input_pipeline_analyzer: {
    load: () =>
      import('./tools/input_pipeline_analyzer/index').then((module) => module.InputPipelineAnalyzer),
  },
  tf_data_bottleneck_analysis: {
    load: () =>
      import('./tools/tf_data_bottleneck_analysis/index').then((module) => module.TfDataBottleneckAnalysis),
  },
  flame_graph: { load: () => import('./tools/flame_graph/index').then((module) => module.FlameGraph) },
  communication: {
    load: () => import('./tools/communication/index').then((module) => module.Communication),
  },
  framework_op_stats: {
    load: () => import('./tools/framework_op_stats/index').then((module) => module.FrameworkOpStats),
  },
  op_profile: { load: () => import('./tools/op_profile/index').then((module) => module.OpProfile) },
  roofline_model: {
    load: () => import('./tools/roofline_model/index').then((module) => module.RooflineModel),
  },
  hlo_stats: { load: () => import('./tools/hlo_stats/index').then((module) => module.HloStats) },
  kernel_stats: { load: () => import('./tools/kernel_stats/index').then((module) => module.KernelStats) },
  memory_profile: {
    load: () => import('./tools/memory_profile/index').then((module) => module.MemoryProfile),
  },
  memory_snapshot: {
    load: () => import('./tools/memory_snapshot/index').then((module) => module.MemorySnapshot),
  },
  memory_viewer: { load: () => import('./tools/memory_viewer/index').then((module) => module.MemoryViewer) },
  graph_viewer: { load: () => import('./tools/graph_viewer/index').then((module) => module.GraphViewer) },
  tpu_compatibility: {
    load: () => import('./tools/tpu_compatibility/index').then((module) => module.TpuCompatibility),
  },
  pod_viewer: { load: () => import('./tools/pod_viewer/index').then((module) => module.PodViewer) },
  megascale_stats: {
    load: () => import('./tools/megascale_stats/index').then((module) => module.MegascaleStats),
  },
  trace_viewer: {
    load: () => import('./tools/trace_viewer/index').then((module) => module.TraceViewer),
    fills: true,
    ahead: askAhead,
  },
};

const GENERIC: ToolView = {
  load: () => import('./tools/generic_page').then((module) => module.GenericPage),
};

export function viewOf(tool: string): ToolView {
  // A link can name members of every object, such as `constructor`.
  return (Object.hasOwn(TOOL_VIEWS, tool) ? TOOL_VIEWS[tool] : undefined) ?? GENERIC;
}

const SIDE_KEY = 'tpuprof.side';

/** If the link leaves run or tool open, selects the newest run and its first tool with data. */
function useDefaults(): void {
  const answer = runs.value;
  const tools = useTools(run.value).data;
  useEffect(() => {
    if (answer && !run.value) choose({ run: defaultRun(answer) }, 'replace');
  }, [answer, run.value]);
  useEffect(() => {
    if (!tools) return;
    toolNames.value = new Set(tools.tools.filter((info) => info.available).map((info) => info.name));
    const first = tools.tools.find((info) => info.available) ?? tools.tools[0];
    if (!tool.value && first && tools.run === run.value) choose({ tool: first.name }, 'replace');
  }, [tools, tool.value]);
}

function useKeys(act: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const action = isTyping(event) ? undefined : act[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
}

/** New runs appear when the user comes back to the page. */
function useFreshRuns(): void {
  useEffect(() => {
    const refresh = (): void => {
      if (!document.hidden) void loadRuns();
    };
    document.addEventListener('visibilitychange', refresh);
    return () => document.removeEventListener('visibilitychange', refresh);
  }, []);
}

function useSide(): [boolean, () => void] {
  const [isOpen, setOpen] = useState(() => window.localStorage.getItem(SIDE_KEY) !== 'closed');
  const toggle = (): void => {
    window.localStorage.setItem(SIDE_KEY, isOpen ? 'closed' : 'open');
    setOpen(!isOpen);
  };
  return [isOpen, toggle];
}

/** Moves the focus past the sidebar. */
function toPage(): void {
  const page = document.querySelector('main');
  if (!page) return;
  page.tabIndex = -1;
  page.focus();
}

export function App(): VNode {
  const [isSideOpen, toggleSide] = useSide();
  const [isHelpOpen, setHelp] = useState(false);
  const toggleHelp = (): void => setHelp(!isHelpOpen);
  const answer = runs.value;
  const error = runsError.value;
  useDefaults();
  useFreshRuns();
  useTitle();
  useKeys({
    '?': toggleHelp,
    '\\': toggleSide,
    '/': () => searchField()?.focus(),
  });
  const page = (): VNode => {
    if (tool.value === MONITOR) return <MonitorSlot onHelp={toggleHelp} isHelpOpen={isHelpOpen} />;
    if (!answer && error) {
      return (
        <main class="page">
          <Failed
            what="The list of runs"
            kind={error.kind}
            message={error.message}
            remedy={error.remedy}
            details={error.details}
            onRetry={() => void loadRuns()}
          />
        </main>
      );
    }
    if (!answer) {
      return (
        <main class="page">
          <Loading what="Looking for runs" />
        </main>
      );
    }
    return answer.runs.length || run.value ? (
      <Page answer={answer} viewOf={viewOf} onHelp={toggleHelp} isHelpOpen={isHelpOpen} />
    ) : (
      <NoRuns />
    );
  };
  return (
    <div class="shell">
      <button type="button" class="button skip-link" onClick={toPage}>
        Skip to the page
      </button>
      <SideBar isOpen={isSideOpen} onToggle={toggleSide} />
      {page()}
      <HelpSlot isOpen={isHelpOpen} onClose={() => setHelp(false)} />
      <CaptureDialogSlot />
    </div>
  );
}
