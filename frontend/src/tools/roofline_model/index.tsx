/** Operations, program and steps against the roofs of the device, as a chart and as tables. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { RooflineView } from './view';

export function RooflineModel(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      format="columns"
      content={(payload) => <RooflineView {...props} payload={payload} />}
    />
  );
}
