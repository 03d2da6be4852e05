/**
 * What the browser remembers, permanently (what was typed last) or for this tab (what it started). Without
 * storage permission everything still works.
 */

/** The most recent targets, shared by the dialog and the monitor. */
export const RECENT_KEY = 'tpuprof.targets';

type Place = 'localStorage' | 'sessionStorage';

export function recall(key: string, place: Place = 'localStorage'): unknown {
  try {
    return JSON.parse(window[place].getItem(key) ?? 'null');
  } catch {
    return null;
  }
}

export function remember(key: string, value: unknown, place: Place = 'localStorage'): void {
  try {
    window[place].setItem(key, JSON.stringify(value));
  } catch {
    // Storage is full or forbidden: the form begins with its defaults the next time.
  }
}
