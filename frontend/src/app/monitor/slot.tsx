/** The monitor's page, loaded when it is first opened. */
import type { VNode } from 'preact';
import { Header } from '../header';
import { useLazy } from '../lazy';
import { Failed, Loading } from '../../widgets/states';

const loadPage = (): Promise<() => VNode> => import('./page').then((module) => module.MonitorPage);
const INFO = { title: 'Monitor', summary: 'Step time, device idle and input share of a running job' };

export function MonitorSlot({ onHelp, isHelpOpen }: { onHelp: () => void; isHelpOpen: boolean }): VNode {
  const { part: Shown, error, retry } = useLazy(loadPage);
  return (
    <main class="page">
      <Header info={INFO} hasExport={false} onHelp={onHelp} isHelpOpen={isHelpOpen} />
      {error ? (
        <Failed
          what="Monitor"
          kind="page"
          message="This page could not be loaded."
          remedy="Reload TensorBoard."
          onRetry={retry}
        />
      ) : Shown ? (
        <Shown />
      ) : (
        <Loading what="Opening Monitor" />
      )}
    </main>
  );
}
