/** Graph viewer: the instructions of a compiled program around one of them, what they cost, and the whole program as text. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { GraphViewerView } from './view';

export function GraphViewer(props: ToolProps): VNode {
  return <PayloadPage {...props} content={(payload) => <GraphViewerView payload={payload} run={props.run} hosts={props.hosts} params={props.params} setParams={props.setParams} />} />;
}
