/**
 * Operations of compiled programs: time by category, by limiting resource and by source line; and all of them
 * in a table.
 */
import type { VNode } from 'preact';
import { PayloadPage } from '../payload_page';
import type { ToolProps } from '../tool';
import { HloStatsView } from './view';

export function HloStats(props: ToolProps): VNode {
  return (
    <PayloadPage
      {...props}
      format="columns"
      content={(payload) => <HloStatsView {...props} payload={payload} />}
    />
  );
}
