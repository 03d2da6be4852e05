/**
 * What the chosen tool will need is fetched while the server says which tools the run has: its code, and its
 * first answer.
 */
import { effect, untracked } from '@preact/signals';
import { viewOf } from '../app';
import { runs } from '../state/catalog';
import { hosts, run, tool } from '../state/selection';

/** Follows the choice of run, tool and hosts; returns how to stop. */
export function followChoice(): () => void {
  return effect(() => {
    const view = tool.value ? viewOf(tool.value) : null;
    const info = runs.value?.runs.find((candidate) => candidate.run === run.value);
    const chosen = hosts.value;
    if (!view) return;
    // Where it cannot be loaded the page will try again and say so.
    view.load().catch(() => undefined);
    if (info?.state === 'ok') untracked(() => view.ahead?.(info.run, chosen, info.n_hosts));
  });
}
