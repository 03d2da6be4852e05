/** Pod viewer: every core of every host beside the others, step by step. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { PodViewerView } from './view';

/**
 * The page's own frame does not change with the step: what does is asked for apart, so that the slider moves
 * freely.
 */
export function PodViewer(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      params={{}}
      content={(payload) => <PodViewerView {...props} payload={payload} />}
    />
  );
}
