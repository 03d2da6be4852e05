/** Esc closes what a page has opened, unless the user is typing or something above it is open. */
import { useEffect } from 'preact/hooks';
import { isTyping } from './keys';

export function useEscape(close: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || isTyping(event) || document.querySelector('dialog[open], .popup')) return;
      event.preventDefault();
      close();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
}
