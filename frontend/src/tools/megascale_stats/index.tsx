/** Collectives between slices: how long they stall the TPUs, and the bandwidth that they need. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { MegascaleView } from './view';

export function MegascaleStats(props: ToolProps): VNode {
  return <PayloadPage {...props} content={(payload) => <MegascaleView {...props} payload={payload} />} />;
}
