/** Light or dark: follows TensorBoard's theme when the user switches it; opened alone, the system's. */
import { signal } from '@preact/signals';
import { hostWindow, isEmbedded } from './frame';

/** The class TensorBoard puts on its body. */
const TENSORBOARD_DARK = 'dark-mode';

export const isDark = signal(false);

function apply(dark: boolean): void {
  document.documentElement.classList.toggle('dark', dark);
  isDark.value = dark;
}

/** Starts following; call once, before the first paint. */
export function followTheme(): void {
  if (isEmbedded()) {
    const body = hostWindow().document.body;
    const read = (): void => apply(body.classList.contains(TENSORBOARD_DARK));
    new MutationObserver(read).observe(body, { attributes: true, attributeFilter: ['class'] });
    read();
    return;
  }
  const query = window.matchMedia('(prefers-color-scheme: dark)');
  query.addEventListener('change', () => apply(query.matches));
  apply(query.matches);
}
