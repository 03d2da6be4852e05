/** Inference: how long requests took, where their time went, and which were slowest. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { InferenceView } from './view';

export function Inference(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      format="columns"
      content={(payload) => (
        <InferenceView payload={payload} params={props.params} setParams={props.setParams} />
      )}
    />
  );
}
