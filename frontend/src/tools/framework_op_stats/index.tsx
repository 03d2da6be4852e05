/** Framework operations ("TensorFlow Stats"): the time of each operation on host and device. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { OpStatsView } from './view';

export function FrameworkOpStats(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      format="columns"
      content={(payload) => (
        <OpStatsView payload={payload} params={props.params} setParams={props.setParams} info={props.info} />
      )}
    />
  );
}
