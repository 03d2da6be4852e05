/** Closes a popup on Escape, on a click elsewhere and when the focus leaves. */
import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

export function useDismiss(anchor: RefObject<HTMLElement>, isOpen: boolean, close: () => void): void {
  useEffect(() => {
    if (!isOpen) return;
    const isOutside = (target: EventTarget | null): boolean =>
      target instanceof Node && !anchor.current?.contains(target);
    const onPointer = (event: Event): void => {
      if (isOutside(event.target)) close();
    };
    const onFocus = (event: FocusEvent): void => {
      if (isOutside(event.target)) close();
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      close();
      anchor.current?.querySelector<HTMLElement>('[aria-haspopup]')?.focus();
    };
    document.addEventListener('pointerdown', onPointer);
    document.addEventListener('focusin', onFocus);
    document.addEventListener('keydown', onKey, true);
    // A click in TensorBoard's own header takes the focus from our frame.
    window.addEventListener('blur', close);
    return () => {
      document.removeEventListener('pointerdown', onPointer);
      document.removeEventListener('focusin', onFocus);
      document.removeEventListener('keydown', onKey, true);
      window.removeEventListener('blur', close);
    };
  }, [isOpen]);
}
