/** Memory: usage of each over time, the contents of its peak, and whether it grows from step to step. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { PayloadPage } from '../payload_page';
import { widthFor } from '../time_window';
import type { ToolProps } from '../tool';
import { MemoryProfileView } from './view';

export function MemoryProfile(props: ToolProps): VNode {
  const width = useMemo(() => widthFor(window.innerWidth), []);
  const params = { width_px: width, ...props.params };
  return (
    <PayloadPage
      {...props}
      params={params}
      content={(payload) => (
        <MemoryProfileView payload={payload} params={props.params} setParams={props.setParams} />
      )}
    />
  );
}
