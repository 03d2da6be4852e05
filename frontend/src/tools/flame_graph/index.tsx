/** Flame graph: which function takes the time, and who calls it. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { FlameGraphView } from './view';

export function FlameGraph(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      format="columns"
      content={(payload) => <FlameGraphView {...props} payload={payload} />}
    />
  );
}
