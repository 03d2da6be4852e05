/** What is under the pointer, in two lines. */

import type { VNode } from 'preact';
import { format, plural } from '../../base/units';
import type { Hover } from './timeline';

export function describe({ picked }: Hover): string {
  if (picked.nMerged > 1) return `${plural(picked.nMerged, 'event')} in this box, longest ${picked.name}`;
  return picked.name;
}

export function Tooltip({ hover }: { hover: Hover }): VNode {
  const { picked } = hover;
  const style = { '--x': `${String(Math.round(hover.x))}px`, '--y': `${String(Math.round(hover.y))}px` };
  return (
    <div class="tv-tip" style={style} role="presentation">
      <b>{describe(hover)}</b>
      <span>{picked.nMerged > 1 ? `box of ${format(picked.durationPs, 'ps')}; zoom in to see them` : format(picked.durationPs, 'ps')}</span>
    </div>
  );
}
