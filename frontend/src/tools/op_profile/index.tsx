/**
 * Where the time of compiled programs goes, as a tree or as a flame, with the details of the chosen operation
 * next to it.
 */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { OpProfileView } from './view';

export function OpProfile(props: ToolProps): VNode {
  return <PayloadPage {...props} content={(payload) => <OpProfileView {...props} payload={payload} />} />;
}
