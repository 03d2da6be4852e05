/**
 * The stage that an arrow key leads to: up to the consumer, down to a producer, sideways along the row. Pure.
 */
import type { Graph } from './model';
import type { Point } from './placed';

function nearest(at: ReadonlyMap<number, Point>, ids: readonly number[], x: number): number | null {
  const distance = (id: number): number => Math.abs((at.get(id)?.x ?? Infinity) - x);
  return ids.length ? ids.reduce((best, id) => (distance(id) < distance(best) ? id : best)) : null;
}

export function nextStage(
  { stages, links }: Graph,
  at: ReadonlyMap<number, Point>,
  from: number,
  key: string,
): number | null {
  const here = at.get(from);
  if (!here) return null;
  if (key === 'ArrowUp')
    return nearest(
      at,
      links.filter(({ to }) => to === from).map((link) => link.from),
      here.x,
    );
  if (key === 'ArrowDown') {
    const below = links.filter((link) => link.from === from);
    // The critical path first: it is the one to follow.
    const critical = below.filter(({ isCritical }) => isCritical);
    return nearest(
      at,
      (critical.length ? critical : below).map(({ to }) => to),
      here.x,
    );
  }
  const sign = key === 'ArrowLeft' ? -1 : key === 'ArrowRight' ? 1 : 0;
  if (!sign) return null;
  const beside = stages
    .map(({ id }) => id)
    .filter((id) => {
      const point = at.get(id);
      return point && Math.abs(point.y - here.y) < 1 && (point.x - here.x) * sign > 0;
    });
  return nearest(at, beside, here.x);
}
