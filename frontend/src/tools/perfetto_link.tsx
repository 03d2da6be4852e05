/** The address of Perfetto's page, as a link that opens a window of its own. */
import type { VNode } from 'preact';

export const PERFETTO = 'https://ui.perfetto.dev';

export function PerfettoLink(): VNode {
  return (
    <a href={PERFETTO} target="_blank" rel="noopener noreferrer">
      {PERFETTO.replace('https://', '')}
    </a>
  );
}
