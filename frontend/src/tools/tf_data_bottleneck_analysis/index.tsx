/** tf.data bottleneck: the slowest path through each input pipeline, and the estimated gain of changes. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { TfDataView } from './view';

export function TfDataBottleneckAnalysis(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      listsDiagnostics
      content={(payload) => (
        <TfDataView payload={payload} params={props.params} setParams={props.setParams} />
      )}
    />
  );
}
