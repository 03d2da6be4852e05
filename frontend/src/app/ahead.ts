/**
 * Prefetches what the chosen tool will need, while the server determines which tools the run has: the tool's
 * code and its first answer.
 */
import { effect, untracked } from '@preact/signals';
import { viewOf } from '../app';
import { runs } from '../state/catalog';
import { hosts, run, tool } from '../state/selection';

/** Follows the choice of run, tool and hosts; returns a function that stops it. */
export function followChoice(): () => void {
  return effect(() => {
    const view = tool.value ? viewOf(tool.value) : null;
    const info = runs.value?.runs.find((candidate) => candidate.run === run.value);
    const chosen = hosts.value;
    if (!view) return;
    // If loading fails here, the page tries again and reports the failure.
    view.load().catch(() => undefined);
    if (info?.state === 'ok') untracked(() => view.ahead?.(info.run, chosen, info.n_hosts));
  });
}
