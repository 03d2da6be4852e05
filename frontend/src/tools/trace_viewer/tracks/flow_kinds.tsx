/** Which kinds of arrows are drawn and followed. */

import type { VNode } from 'preact';
import type { Timeline } from '../state/timeline';

const COUNT = new Intl.NumberFormat('en-US');

export function FlowKinds({ timeline }: { timeline: Timeline }): VNode | null {
  const hidden = timeline.hiddenKinds.value;
  const counts = new Map<string, number>([...hidden].map((kind) => [kind, 0]));
  // Read again when another window arrives.
  void timeline.nFlows.value;
  const ofWindow = timeline.window?.flows ?? [];
  const inWindow = new Set(ofWindow.map(({ kind }) => kind));
  // Arrows that only a selected event has, such as those of its operands, are not among the window's.
  for (const { kind } of [...ofWindow, ...timeline.flows.filter(({ kind: own }) => !inWindow.has(own))])
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  if (counts.size === 0) return null;
  return (
    <fieldset class="tv-kinds">
      <legend>Kinds of arrows</legend>
      {[...counts].sort().map(([kind, n]) => (
        <label key={kind} class="tv-check-line">
          <input
            type="checkbox"
            checked={!hidden.has(kind)}
            onChange={(event) => {
              const next = new Set(hidden);
              if (event.currentTarget.checked) next.delete(kind);
              else next.add(kind);
              timeline.hideKinds(next);
            }}
          />
          {kind} {n > 0 && <small class="muted">{COUNT.format(n)} drawn</small>}
        </label>
      ))}
    </fieldset>
  );
}
