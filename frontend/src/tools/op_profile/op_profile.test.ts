import { describe, expect, it } from 'vitest';
import { tableOf } from '../testing';
import { bandToken, boxesOf, nodesOf, openAtFirst, parseOpen, rowsOfTree, type TreeView } from './model';

const TABLE = tableOf({
  name: ['all', 'p1', 'IDLE', 'p2', 'dot', 'add', 'dot.1', 'dot.2'],
  kind: ['all', 'program', 'idle', 'program', 'category', 'category', 'op', 'op'],
  parent: [-1, 0, 0, 0, 1, 1, 4, 4],
  n_children: [3, 2, 0, 0, 5, 0, 0, 0],
  self_time_ps: [100, 60, 30, 10, 50, 10, 30, 15],
  provenance: ['', '', '', '', '', '', 'jit(f)/x', ''],
});
const NODES = nodesOf(TABLE);
const VIEW: TreeView = { open: new Set([1, 4]), query: '', sort: 'time', ascending: false, top: 10 };
const names = (view: Partial<TreeView>): string[] => rowsOfTree(NODES, { ...VIEW, ...view }).map(({ node, rest }) => (rest ? `${rest.count} of ${node.name}: ${rest.timePs}` : node.name));

describe('rows of the tree', () => {
  it('are those below what is open, with what the server left out', () => {
    expect(names({})).toEqual(['p1', 'dot', 'dot.1', 'dot.2', '3 of dot: 5', 'add', 'IDLE', 'p2']);
    expect(names({ open: new Set() })).toEqual(['p1', 'IDLE', 'p2']);
  });

  it('are cut at the longest ones', () => {
    expect(names({ top: 1, open: new Set([4]) })).toEqual(['p1', '2 of all: 40']);
  });

  it('are sorted within their parent', () => {
    expect(names({ sort: 'name', ascending: true, open: new Set() })).toEqual(['IDLE', 'p1', 'p2']);
  });

  it('are opened by a search, in names and framework names', () => {
    expect(names({ query: 'jit(f)', open: new Set() })).toEqual(['p1', 'dot', 'dot.1']);
    expect(names({ query: 'nothing' })).toEqual([]);
  });
});

describe('what is open', () => {
  it('begins on the way to where most time goes', () => {
    expect([...openAtFirst(NODES)]).toEqual([1, 4]);
  });
  it('is read from the link', () => {
    expect([...parseOpen('3.x.7', new Set())]).toEqual([3, 7]);
    expect([...parseOpen(undefined, new Set([1]))]).toEqual([1]);
  });
});

describe('the flame', () => {
  it('gives each node the width of its time below its parent', () => {
    const boxes = boxesOf(NODES, 0).map(({ node, left, width, level }) => [node.name, level, Math.round(left * 100), Math.round(width * 100)]);
    expect(boxes).toContainEqual(['all', 0, 0, 100]);
    expect(boxes).toContainEqual(['IDLE', 1, 60, 30]);
    expect(boxes).toContainEqual(['dot.2', 3, 30, 15]);
  });
  it('leaves out what is too narrow to see', () => {
    const table = tableOf({ name: ['all', 'long', 'short'], kind: ['all', 'op', 'op'], parent: [-1, 0, 0], n_children: [2, 0, 0], self_time_ps: [1e6, 999_999, 1] });
    expect(boxesOf(nodesOf(table), 0).map(({ node }) => node.name)).toEqual(['all', 'long']);
  });
});

it('colours by how much of the peak is used', () => {
  expect([0.1, 0.3, 0.6, null].map(bandToken)).toEqual(['--bad', '--warn', '--good', '--c-idle']);
});
