/**
 * What of a TensorFlow graph a TPU can run: a tree of scopes in green and red, and what to do about the rest.
 */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { TpuCompatibilityView } from './view';

export function TpuCompatibility(props: ToolProps): VNode {
  // The drawing is asked for on its own: all else stays while boxes open and close.
  const params = Object.fromEntries(
    Object.entries(props.params).filter(([name]) => name !== 'boxes' && name !== 'drawing'),
  );
  return (
    <PayloadPage
      {...props}
      params={params}
      content={(payload) => <TpuCompatibilityView {...props} payload={payload} />}
    />
  );
}
