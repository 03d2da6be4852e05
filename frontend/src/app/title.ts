/** The window's title names the tool and run while our tab is shown; otherwise it is TensorBoard's own. */
import { useEffect } from 'preact/hooks';
import { hostWindow, isEmbedded } from '../base/frame';
import { runs } from '../state/catalog';
import { MONITOR } from '../state/capture';
import { isTabShown, run, tool } from '../state/selection';
import { useTools } from '../state/catalog';

export function titleOf(toolTitle: string, runName: string, site: string): string {
  return [toolTitle, runName, site].filter(Boolean).join(' · ');
}

export function useTitle(): void {
  const tools = useTools(run.value).data?.tools;
  const isMonitor = tool.value === MONITOR;
  const toolTitle = isMonitor ? 'Monitor' : (tools?.find((info) => info.name === tool.value)?.title ?? '');
  const runName = isMonitor ? '' : run.value;
  const isShown = isTabShown.value;
  useEffect(() => {
    const page = hostWindow().document;
    // The iframe has a title of its own, which screen readers announce.
    if (isEmbedded()) document.title = titleOf(toolTitle, runName, '') || 'Profile';
    if (!isShown) return;
    let site = page.title;
    let ours = '';
    const set = (): void => {
      ours = titleOf(toolTitle, runName, isEmbedded() ? site : 'Profile');
      page.title = ours;
    };
    set();
    // TensorBoard sets its own title when its settings arrive.
    const watch = new MutationObserver(() => {
      if (page.title === ours) return;
      site = page.title;
      set();
    });
    watch.observe(page.head, { childList: true, subtree: true, characterData: true });
    return () => {
      watch.disconnect();
      page.title = site;
    };
  }, [toolTitle, runName, isShown, runs.value === null]);
}
