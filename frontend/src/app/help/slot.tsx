/** Help, if it is open: its code is loaded when it is first opened. */
import type { ComponentType, VNode } from 'preact';
import { useLazy } from '../lazy';

const load = (): Promise<ComponentType<{ onClose: () => void }>> =>
  import('./panel').then((module) => module.HelpPanel);

function Opened({ onClose }: { onClose: () => void }): VNode | null {
  const { part: Panel } = useLazy(load);
  return Panel && <Panel onClose={onClose} />;
}

export function HelpSlot({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): VNode | null {
  return isOpen ? <Opened onClose={onClose} /> : null;
}
