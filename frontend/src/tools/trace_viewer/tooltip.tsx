/** What is under the pointer, in two or three lines. */

import type { VNode } from 'preact';
import { format, plural } from '../../base/units';
import type { Hover } from './timeline';

export function Tooltip({ hover }: { hover: Hover }): VNode {
  const { picked } = hover;
  const style = { '--x': `${String(Math.round(hover.x))}px`, '--y': `${String(Math.round(hover.y))}px` };
  if (picked.nMerged <= 1) {
    return <div class="tv-tip" style={style} role="presentation"><b>{picked.name}</b><span>{format(picked.durationPs, 'ps')}</span></div>;
  }
  return (
    <div class="tv-tip" style={style} role="presentation">
      <b>{plural(picked.nMerged, 'event')} in this box</b>
      <span>longest: {picked.name}</span>
      <small>{format(picked.durationPs, 'ps')} from first to last; zoom in to see them</small>
    </div>
  );
}
