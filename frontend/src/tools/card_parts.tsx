/** The parts of a details card: its facts, and links to it in other tools. */
import type { VNode } from 'preact';
import { canOpen } from '../state/catalog';
import { openTool } from '../state/selection';

export function Fact({ name, value, tip }: { name: string; value: string; tip?: string }): VNode | null {
  if (!value) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd data-tip={tip}>{value}</dd>
    </div>
  );
}

export interface Way {
  tool: string;
  text: string;
  params: Record<string, string>;
}

/** Links to those of the tools that have data for this run. */
export function Ways({ ways }: { ways: readonly Way[] }): VNode {
  return (
    <>
      {ways
        .filter(({ tool }) => canOpen(tool))
        .map(({ tool, text, params }) => (
          <button key={tool} type="button" class="text-link" onClick={() => openTool(tool, params)}>
            {text}
          </button>
        ))}
    </>
  );
}
