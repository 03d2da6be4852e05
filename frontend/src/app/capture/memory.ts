/** What the browser remembers of the forms between visits. Where it may not remember, everything works without. */

/** The targets last used, by the dialog and by the monitor. */
export const RECENT_KEY = 'tpuprof.targets';

export function recall(key: string): unknown {
  try {
    return JSON.parse(window.localStorage.getItem(key) ?? 'null');
  } catch {
    return null;
  }
}

export function remember(key: string, value: unknown): void {
  try {
    window.localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Storage is full or forbidden: the form begins with its defaults the next time.
  }
}
