/** The shortcuts of the current page, for the help dialog. A tool adds its own while it is on screen. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

export interface KeyHelp {
  keys: string;
  does: string;
}

export const toolKeys = signal<readonly KeyHelp[]>([]);

/** Shows these shortcuts in the help dialog while the calling component is on screen. */
export function useToolKeys(keys: readonly KeyHelp[]): void {
  useEffect(() => {
    toolKeys.value = keys;
    return () => {
      toolKeys.value = [];
    };
  }, []);
}

/** Whether a key press belongs to a field and not to the page. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName))
  );
}
