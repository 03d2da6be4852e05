/** Communication: which part of it compute hides, which part each step pays for, and what it is made of. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { CommunicationView } from './view';

/** The page does not depend on the step and the device of the picture: that is requested separately. */
export function Communication(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      params={{}}
      content={(payload) => <CommunicationView {...props} payload={payload} />}
    />
  );
}
