/**
 * Memory viewer: what a compiled program keeps in memory at its peak, how usage got there, and what would
 * lower it.
 */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { MemoryViewerView } from './view';

export function MemoryViewer(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      format="columns"
      content={(payload) => (
        <MemoryViewerView payload={payload} params={props.params} setParams={props.setParams} />
      )}
    />
  );
}
