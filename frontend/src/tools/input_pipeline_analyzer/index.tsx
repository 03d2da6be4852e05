/** Input pipeline: how much of each step waits for data, and where the time on the host goes. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { InputPipelineView } from './view';

export function InputPipelineAnalyzer(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      listsDiagnostics
      content={(payload) => (
        <InputPipelineView payload={payload} params={props.params} setParams={props.setParams} />
      )}
    />
  );
}
