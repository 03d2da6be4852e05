/** Pod viewer: every core of every host compared, step by step. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { PodViewerView } from './view';

/**
 * The page's frame does not depend on the step: data that does is requested separately, so that the slider
 * moves freely.
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
