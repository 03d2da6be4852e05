/** The look of boxes: by family, by file or package, or by the difference of two sets of steps. Pure. */
import { paletteToken } from '../../base/color';
import { changeOf, groupOf, hashOf, type Coloring, type FlameNode } from './model';

const PALETTE = 10;
/** Changes below this share are drawn as none. */
const LEAST_CHANGE = 0.02;

export interface Paint {
  /** A class of the style sheet. */
  name: string;
  style: Record<string, string>;
}

export function paintOf(node: FlameNode, coloring: Coloring, isCompared: boolean): Paint {
  if (node.nSmaller) return { name: 'smaller', style: {} };
  if (isCompared) {
    const change = changeOf(node);
    if (Math.abs(change) < LEAST_CHANGE) return { name: 'same', style: {} };
    return {
      name: change > 0 ? 'more' : 'less',
      style: { '--change': `${Math.round(15 + 60 * Math.abs(change))}%` },
    };
  }
  if (node.phase && node.family !== 'waiting') return { name: node.phase, style: {} };
  const group = groupOf(node, coloring);
  if (coloring === 'family' || !group || node.family === 'waiting')
    return { name: node.family || 'smaller', style: {} };
  return { name: 'grouped', style: { '--group': `var(${groupToken(group)})` } };
}

export function groupToken(group: string): string {
  return paletteToken(hashOf(group) % PALETTE);
}
