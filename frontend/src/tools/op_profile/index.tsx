/**
 * Where the time of compiled programs goes, as a tree or as a flame, with the details of the chosen operation
 * beside it.
 */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { OpProfileView } from './view';

export function OpProfile(props: ToolProps): VNode {
  // The choice of an operation is asked for on its own: the tree stays.
  const params = Object.fromEntries(
    Object.entries(props.params).filter(([name]) => name !== 'program' && name !== 'op'),
  );
  return (
    <PayloadPage
      {...props}
      params={params}
      content={(payload) => <OpProfileView {...props} payload={payload} />}
    />
  );
}
