/**
 * The operations of a TensorFlow graph that a TPU can run: a tree of scopes in green and red, and remedies
 * for the rest.
 */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { TpuCompatibilityView } from './view';

export function TpuCompatibility(props: ToolProps): VNode {
  return (
    <PayloadPage {...props} content={(payload) => <TpuCompatibilityView {...props} payload={payload} />} />
  );
}
