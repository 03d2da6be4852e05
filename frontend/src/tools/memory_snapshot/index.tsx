/** Memory in use at one moment, who allocated it, and, for PyTorch, its history. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { PayloadPage } from '../payload_page';
import { widthFor } from '../time_window';
import type { ToolProps } from '../tool';
import { MemorySnapshotView } from './view';

export function MemorySnapshot(props: ToolProps): VNode {
  const width = useMemo(() => widthFor(window.innerWidth), []);
  const params = { width_px: width, ...props.params };
  return (
    <PayloadPage
      {...props}
      params={params}
      format="columns"
      content={(payload) => (
        <MemorySnapshotView payload={payload} params={props.params} setParams={props.setParams} />
      )}
    />
  );
}
