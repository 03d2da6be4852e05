/** Overview: how the job spent its time, and what to do about it. */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { OverviewView } from './view';

export function OverviewPage(props: ToolProps): VNode {
  return <PayloadPage {...props} listsDiagnostics content={(payload) => <OverviewView payload={payload} params={props.params} setParams={props.setParams} />} />;
}
