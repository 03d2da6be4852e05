import { describe, expect, it } from 'vitest';
import { layoutOf } from './layout';
import type { Graph, Stage } from './model';
import { NODE } from './placed';
import {
  firstView,
  fitView,
  panView,
  parseViewText,
  revealView,
  transformOf,
  viewAround,
  viewText,
  zoomView,
} from '../graph_viewport';
import { nextStage } from './walk';

function stage(id: number, parent: number, isCritical = false): Stage {
  return {
    id,
    parent,
    isCritical,
    name: `S${id}`,
    longName: '',
    startPs: 0,
    totalPs: 1,
    selfPs: 1,
    nCalls: 1,
    nIterators: 1,
    isBottleneck: false,
    isAsync: false,
    parameters: [],
  };
}

/** A tree from the parent of each stage; -1: the root. */
function tree(parents: readonly number[], critical: readonly number[] = []): Graph {
  const isOn = new Set(critical);
  const stages = parents.map((parent, id) => stage(id, parent, isOn.has(id)));
  return {
    stages,
    links: stages
      .filter(({ parent }) => parent >= 0)
      .map(({ id, parent, isCritical }) => ({ from: parent, to: id, isCritical })),
  };
}

/** Root 0, under it 1, under that 2 and 3; 3 is critical. */
const zip = tree([-1, 0, 1, 1], [0, 1, 3]);

describe('the layout', () => {
  it('has consumers above producers, siblings side by side', () => {
    const { at } = layoutOf(zip);
    const y = [0, 1, 2, 3].map((id) => at.get(id)?.y ?? 0);
    expect(y[0]).toBeLessThan(y[1] as number);
    expect(y[1]).toBeLessThan(y[2] as number);
    expect(y[2]).toBe(y[3]);
  });

  it('lets no boxes overlap, all within its size, with 200 stages', () => {
    const graph = tree(Array.from({ length: 200 }, (_, id) => (id === 0 ? -1 : Math.floor((id - 1) / 3))));
    const { at, width, height, paths } = layoutOf(graph);
    const points = [...at.values()];
    expect(points).toHaveLength(200);
    expect(paths.every((path) => /^M[\d.-]+ [\d.-]+C/.test(path))).toBe(true);
    for (const [i, a] of points.entries()) {
      expect(a.x - NODE.width / 2).toBeGreaterThanOrEqual(0);
      expect(a.x + NODE.width / 2).toBeLessThanOrEqual(width);
      expect(a.y + NODE.height / 2).toBeLessThanOrEqual(height);
      for (const b of points.slice(i + 1))
        expect(Math.abs(a.x - b.x) >= NODE.width || Math.abs(a.y - b.y) >= NODE.height).toBe(true);
    }
  });

  it('draws the critical path of a tree as a straight line', () => {
    const critical = Array.from({ length: 30 }, (_, id) => id);
    const graph = tree(
      Array.from({ length: 200 }, (_, id) => (id === 0 ? -1 : id < 30 ? id - 1 : Math.floor((id - 1) / 3))),
      critical,
    );
    const { at } = layoutOf(graph);
    expect(new Set(critical.map((id) => at.get(id)?.x)).size).toBe(1);
  });

  it('survives a cycle, a link to itself, two links between the same stages, a stage alone and none at all', () => {
    const graph = tree([-1, 0, 1]);
    const links = [
      ...graph.links,
      { from: 2, to: 0, isCritical: false },
      { from: 1, to: 1, isCritical: false },
      { from: 0, to: 1, isCritical: false },
    ];
    expect(layoutOf({ ...graph, links }).paths).toHaveLength(5);
    expect(layoutOf(tree([-1])).at.size).toBe(1);
    expect(layoutOf({ stages: [], links: [] }).at.size).toBe(0);
  });
});

describe('the view', () => {
  const box = { width: 1000, height: 500 };
  const large = { width: 4000, height: 4000 };

  it('shows all of a small graph at its natural size', () =>
    expect(fitView({ width: 200, height: 300 }, box)).toEqual({ x: 100, y: 150, scale: 1 }));
  it('shows all of a large one small', () => expect(fitView(large, box).scale).toBe(0.125));
  it('opens legibly around the bottleneck where all would be too small', () => {
    const view = firstView(large, box, { x: 2000, y: 3990 });
    expect(view.scale).toBeGreaterThan(0.5);
    expect(view.x).toBe(2000);
    expect(view.y + box.height / 2 / view.scale).toBeCloseTo(4000);
  });
  it('wastes no room beyond the edges at a requested scale', () => {
    expect(
      viewAround({ width: 400, height: 700 }, { width: 900, height: 560 }, { x: 300, y: 300 }, 1),
    ).toEqual({ x: 200, y: 300, scale: 1 });
    expect(
      viewAround({ width: 400, height: 700 }, { width: 900, height: 560 }, { x: 300, y: 690 }, 1),
    ).toEqual({ x: 200, y: 420, scale: 1 });
  });
  it('zooms at the pointer', () => {
    const before = { x: 100, y: 150, scale: 1 };
    const after = zoomView(before, 2, box, { x: 900, y: 100 });
    const under = (view: typeof before): number => view.x + (900 - box.width / 2) / view.scale;
    expect(under(after)).toBeCloseTo(under(before));
    expect(zoomView(before, 1000, box).scale).toBe(3);
  });
  it('follows a drag', () =>
    expect(panView({ x: 100, y: 100, scale: 2 }, 20, -40)).toEqual({ x: 90, y: 120, scale: 2 }));
  it('moves only as far as a stage needs to be seen', () => {
    expect(revealView({ x: 500, y: 250, scale: 1 }, box, { x: 500, y: 300 }, NODE)).toEqual({
      x: 500,
      y: 250,
      scale: 1,
    });
    expect(revealView({ x: 500, y: 250, scale: 1 }, box, { x: 500, y: 1000 }, NODE).y).toBeCloseTo(
      1000 - 250 + NODE.height / 2 + 8,
    );
  });
  it('is a transform, and text in the link', () => {
    expect(transformOf({ x: 100, y: 50, scale: 2 }, box)).toBe('translate(300 150) scale(2)');
    expect(parseViewText(viewText({ x: 12.4, y: -3, scale: 0.51234 }))).toEqual({
      x: 12,
      y: -3,
      scale: 0.512,
    });
    for (const text of [undefined, '', 'a,b,c', '1,2', '1,2,0']) expect(parseViewText(text)).toBeNull();
  });
});

describe('the arrow keys', () => {
  const { at } = layoutOf(zip);
  it.each([
    [1, 'ArrowUp', 0],
    [0, 'ArrowUp', null],
    [1, 'ArrowDown', 3],
    [3, 'ArrowDown', null],
    [0, 'Tab', null],
    [9, 'ArrowUp', null],
  ])('from %s %s to %s', (from, key, to) => expect(nextStage(zip, at, from, key)).toBe(to));
  it('lead sideways along the row', () => {
    const [left, right] = (at.get(2)?.x ?? 0) < (at.get(3)?.x ?? 0) ? [2, 3] : [3, 2];
    expect(nextStage(zip, at, left, 'ArrowRight')).toBe(right);
    expect(nextStage(zip, at, right, 'ArrowLeft')).toBe(left);
    expect(nextStage(zip, at, left, 'ArrowLeft')).toBeNull();
  });
});
