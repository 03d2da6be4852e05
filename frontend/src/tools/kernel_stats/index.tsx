/** GPU kernels: which take the time, how they were launched, on which units they ran. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { KernelStatsView } from './view';

export function KernelStats(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      format="columns"
      content={(payload) => (
        <KernelStatsView payload={payload} params={props.params} setParams={props.setParams} />
      )}
    />
  );
}
