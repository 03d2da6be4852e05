/**
 * Graph viewer: the instructions of a compiled program around one of them, what they cost, and the whole
 * program as text.
 */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { GraphViewerView } from './view';

export function GraphViewer(props: ToolProps): VNode {
  // The default central instruction depends on the times; one named by the link does not, and is drawn before
  // the events are read.
  const early = props.params['program'] && props.params['op'] ? { times: 'false' } : null;
  return (
    <PayloadPage
      {...props}
      early={early}
      content={(payload) => (
        <GraphViewerView
          payload={payload}
          run={props.run}
          hosts={props.hosts}
          params={props.params}
          setParams={props.setParams}
        />
      )}
    />
  );
}
