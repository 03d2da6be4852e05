/**
 * The stage that an arrow key leads to: up to the consumer, down to a producer, sideways along the row. Pure.
 */
import type { Graph } from './model';
import type { Point } from './placed';

function nearest(centers: ReadonlyMap<number, Point>, ids: readonly number[], x: number): number | null {
  const distance = (id: number): number => Math.abs((centers.get(id)?.x ?? Infinity) - x);
  return ids.length ? ids.reduce((best, id) => (distance(id) < distance(best) ? id : best)) : null;
}

export function nextStage(
  { stages, links }: Graph,
  centers: ReadonlyMap<number, Point>,
  from: number,
  key: string,
): number | null {
  const start = centers.get(from);
  if (!start) return null;
  if (key === 'ArrowUp')
    return nearest(
      centers,
      links.filter(({ to }) => to === from).map((link) => link.from),
      start.x,
    );
  if (key === 'ArrowDown') {
    const below = links.filter((link) => link.from === from);
    // The critical path first: it is the one to follow.
    const critical = below.filter(({ isCritical }) => isCritical);
    return nearest(
      centers,
      (critical.length ? critical : below).map(({ to }) => to),
      start.x,
    );
  }
  const sign = key === 'ArrowLeft' ? -1 : key === 'ArrowRight' ? 1 : 0;
  if (!sign) return null;
  const beside = stages
    .map(({ id }) => id)
    .filter((id) => {
      const point = centers.get(id);
      return point && Math.abs(point.y - start.y) < 1 && (point.x - start.x) * sign > 0;
    });
  return nearest(centers, beside, start.x);
}
