import { describe, expect, it } from 'vitest';
import { answerOf, payloadOf, tableFor } from '../testing';
import {
  boxesOf,
  changeOf,
  found,
  FUNCTION,
  largestGroups,
  neighbor,
  nodesOf,
  TABLES,
  ticksOf,
  tipOf,
  type FlameNode,
} from './model';
import { paintOf } from './paint';
import { nextTo, placedOf, sidesOf } from './panel';
import { stepChange } from './view';

type Cells = Parameters<typeof tableFor<typeof TABLES.nodes.required, typeof TABLES.nodes.optional>>[1];

function nodesFrom(columns: Cells): FlameNode[] {
  return nodesOf(payloadOf({ tables: { nodes: tableFor(TABLES.nodes, columns) } }));
}

/** Two threads: main (100) > load (60) > get (50), (3 smaller) (4); main > log (30). On the other, crop (20). */
const TREE: Cells = {
  thread: [0, 0, 0, 0, 0, 2],
  parent: [-1, 0, 1, 1, 0, -1],
  name: ['main', 'load', 'get', '', 'log', 'crop'],
  file: ['train.py', 'train.py', 'queue.py', '', 'train.py', 'data.py'],
  line: [3, 9, 171, null, 40, 7],
  package: ['', '', 'queue', '', '', ''],
  family: ['yours', 'yours', 'waiting', '', 'yours', 'yours'],
  self_ps: [10, 6, 50, 4, 30, 20],
  total_ps: [100, 60, 50, 4, 30, 20],
  calls: [1, 2, 4, 8, 1, 3],
  n_smaller: [0, 0, 0, 3, 0, 0],
  key: [
    '$train.py:3 main',
    '$train.py:9 load',
    '$queue.py:171 get',
    '',
    '$train.py:40 log',
    '$data.py:7 crop',
  ],
};
const NODES = nodesFrom(TREE);
const WHOLE = { spanPs: 100, zoomed: -1, least: 0 };

describe('nodes', () => {
  it('have levels, places and children', () => {
    expect(NODES.map(({ level }) => level)).toEqual([0, 1, 2, 2, 1, 0]);
    expect(NODES.map(({ children }) => children)).toEqual([[1, 4], [2, 3], [], [], [], []]);
    expect(NODES.map(({ place }) => place)).toEqual([
      'train.py:3',
      'train.py:9',
      'queue.py:171',
      '',
      'train.py:40',
      'data.py:7',
    ]);
    expect(NODES[3]?.name).toBe('(3 smaller)');
  });

  it('never come before their caller, whatever the answer says', () => {
    const odd = nodesFrom({ ...TREE, parent: [3, 0, 1, 99, 0, -1] });
    expect(odd.map(({ parent }) => parent)).toEqual([-1, 0, 1, -1, 0, -1]);
  });
});

describe('boxes', () => {
  const boxes = (options: Partial<typeof WHOLE>, nodes = NODES): (string | number)[][] =>
    boxesOf(nodes, 0, { ...WHOLE, ...options })
      .map(({ node, left, width, level }) => [node.name, left, width, level])
      .sort((a, b) => Number(a[3]) - Number(b[3]) || Number(a[1]) - Number(b[1]));

  it('are as wide as their time, next to their siblings', () => {
    expect(boxes({})).toEqual([
      ['main', 0, 1, 0],
      ['load', 0, 0.6, 1],
      ['log', 0.6, 0.3, 1],
      ['get', 0, 0.5, 2],
      ['(3 smaller)', 0.5, 0.04, 2],
    ]);
    expect(boxesOf(NODES, 2, WHOLE).map(({ node, width }) => [node.name, width])).toEqual([['crop', 0.2]]);
  });

  it('are left out where they are too narrow', () => {
    expect(boxes({ least: 0.05 }).map(([name]) => name)).toEqual(['main', 'load', 'log', 'get']);
  });

  it('zoom: the callers fill the width, too', () => {
    expect(boxes({ zoomed: 1 })).toEqual([
      ['main', 0, 1, 0],
      ['load', 0, 1, 1],
      ['get', 0, 50 / 60, 2],
      ['(3 smaller)', 50 / 60, 4 / 60, 2],
    ]);
  });

  it('lie where calls begin, in time order', () => {
    const inTime = nodesFrom({ ...TREE, start_ps: [0, 20, 25, 75, 85, 0] });
    expect(boxes({}, inTime).map(([name, left]) => [name, left])).toEqual([
      ['main', 0],
      ['load', 0.2],
      ['log', 0.85],
      ['get', 0.25],
      ['(3 smaller)', 0.75],
    ]);
  });

  it('are as wide as both where steps are compared', () => {
    const compared = nodesFrom({
      ...TREE,
      other_self_ps: [0, 0, 140, 0, 30, 0],
      other_total_ps: [170, 140, 140, 0, 30, 0],
    });
    expect(
      boxes({ spanPs: 270 }, compared).map(([name, , width]) => [name, Math.round(270 * Number(width))]),
    ).toEqual([
      ['main', 270],
      ['load', 200],
      ['log', 60],
      ['get', 190],
      ['(3 smaller)', 4],
    ]);
    expect(changeOf(compared[2] as FlameNode)).toBeCloseTo(-90 / 140);
    expect(compared.map((node) => paintOf(node, 'family', true).name)).toEqual([
      'less',
      'less',
      'less',
      'smaller',
      'same',
      'more',
    ]);
  });
});

describe('search', () => {
  it('counts a match inside another once', () => {
    const hits = found(NODES, ['train.py']);
    expect([...(hits?.rows ?? [])]).toEqual([0, 1, 4]);
    expect(hits?.totalPs).toBe(100);
    expect(found(NODES, ['get'])?.totalPs).toBe(50);
    expect(found(NODES, [])).toBeNull();
  });
});

describe('keys', () => {
  const drawn = new Set([0, 1, 2, 4]);
  it.each([
    [1, 'ArrowUp', 0],
    [0, 'ArrowUp', 0],
    [0, 'ArrowDown', 1],
    [1, 'ArrowDown', 2],
    [2, 'ArrowDown', 2],
    [1, 'ArrowRight', 4],
    [4, 'ArrowRight', 4],
    [4, 'ArrowLeft', 1],
    [1, 'End', 4],
    [2, 'ArrowRight', 2],
  ])('from %i, %s leads to %i', (row, key, to) => {
    expect(neighbor(NODES, drawn, row, key)).toBe(to);
  });
});

describe('looks', () => {
  it('are by family, file or package; what waits stays gray', () => {
    expect(paintOf(NODES[0] as FlameNode, 'family', false).name).toBe('yours');
    expect(paintOf(NODES[0] as FlameNode, 'file', false).name).toBe('grouped');
    expect(paintOf(NODES[2] as FlameNode, 'file', false).name).toBe('waiting');
    expect(paintOf(NODES[3] as FlameNode, 'file', false).name).toBe('smaller');
    expect(largestGroups(NODES, 'file', 2)).toEqual(['queue.py', 'train.py']);
    expect(largestGroups(NODES, 'package', 1)).toEqual(['queue']);
  });

  it('have a tooltip with all numbers', () => {
    expect(tipOf(NODES[1] as FlameNode, 200, true).split('\n')).toEqual([
      'load  train.py:9',
      'Your code',
      'Total 60\u00a0ps per step (30.0%)',
      'Self 6\u00a0ps per step (3.00%)',
      'Calls 2 per step',
    ]);
  });

  it.each([
    [5000, 'keeps 4.88\u00a0KiB'],
    [0, 'keeps nothing'],
    [-70, 'frees 70\u00a0B more than that'],
  ])('say what a module allocates and of it keeps: %i bytes', (netBytes, text) => {
    const node = { ...(NODES[1] as FlameNode), allocatedBytes: 8000, netBytes, peakBytes: 6000 };
    expect(tipOf(node, 200, true).split('\n').slice(-2)).toEqual([
      `Allocates 7.81\u00a0KiB per step, ${text}`,
      'Needs up to 5.86\u00a0KiB more than at its start',
    ]);
  });

  it('have round ticks', () => {
    expect(ticksOf(12.3e9, 6)).toEqual([0, 5e9, 10e9]);
    expect(ticksOf(100, 10)).toHaveLength(11);
    expect(ticksOf(0, 5)).toEqual([0]);
  });
});

describe('the steps', () => {
  it('are shown by the first click and compared by the second', () => {
    expect(stepChange({}, '7')).toMatchObject({ steps: '7' });
    expect(stepChange({ steps: '7' }, '9')).toMatchObject({ against: '9' });
    expect(stepChange({ steps: '7', against: '9' }, '9')).toMatchObject({ against: undefined });
    expect(stepChange({ steps: '7', against: '9' }, '7')).toMatchObject({
      steps: undefined,
      against: undefined,
    });
    expect(stepChange({ steps: '7', order: 'time' }, '9')).toMatchObject({ steps: '9' });
    expect(stepChange({ steps: 'median' }, '9')).toMatchObject({ steps: '9' });
  });
});

describe('the sides of a function', () => {
  const payload = answerOf(FUNCTION, {
    sides: {
      side: ['callers', 'callers', 'callers', 'callers', 'callees', 'callees', 'callees'],
      parent: [-1, 0, 1, 0, -1, 4, 4],
      name: ['f', 'a', 'main', 'b', 'f', 'g', 'h'],
      total_ps: [100, 70, 70, 30, 100, 60, 10],
      calls: [5, 3, 3, 2, 5, 10, 1],
      key: ['f', 'a', 'main', 'a', 'f', 'g', 'h'],
    },
  });
  const { all, callers, callees } = sidesOf(payload);

  it('are two trees from the function on', () => {
    expect(callers.map(({ level }) => level)).toEqual([0, 1, 2, 1]);
    expect(callees.map(({ level }) => level)).toEqual([0, 1, 1]);
    const places = placedOf(all, callees[0] as (typeof all)[0]).map(({ node, left, width }) => [
      node.name,
      left,
      width,
    ]);
    expect(places).toContainEqual(['h', 0.6, 0.1]);
  });

  it('sum up what has the same name', () => {
    expect(nextTo(all, callers[0]).map(({ totalPs, calls }) => [totalPs, calls])).toEqual([[100, 5]]);
    expect(nextTo(all, callees[0]).map(({ name }) => name)).toEqual(['g', 'h']);
  });
});
