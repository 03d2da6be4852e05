import { describe, expect, it } from 'vitest';
import { OP_PROFILE } from '../../api/tables/op_profile';
import { payloadOf, tableFor } from '../testing';
import {
  bandToken,
  boxesOf,
  coloringOf,
  fusionsToOpen,
  insideOf,
  nodesOf,
  squarified,
  TABLES,
  tilesOf,
  withInside,
  type OpNode,
} from './model';
import { openAtFirst, parseOpen, rowsOfTree, type TreeView } from './rows';

/** The tree of a table of nodes. */
function nodesFrom(
  columns: Parameters<typeof tableFor<typeof TABLES.nodes.required, typeof TABLES.nodes.optional>>[1],
): OpNode[] {
  return nodesOf(payloadOf({ tables: { nodes: tableFor(TABLES.nodes, columns) } }));
}

const NODES = nodesFrom({
  name: ['all', 'p1', 'IDLE', 'p2', 'dot', 'add', 'dot.1', 'dot.2'],
  kind: ['all', 'program', 'idle', 'program', 'category', 'category', 'op', 'op'],
  parent: [-1, 0, 0, 0, 1, 1, 4, 4],
  n_children: [3, 2, 0, 0, 5, 0, 0, 0],
  self_time_ps: [100, 60, 30, 10, 50, 10, 30, 15],
  provenance: ['', '', '', '', '', '', 'jit(f)/x', ''],
});
const VIEW: TreeView = {
  open: new Set([1, 4]),
  query: '',
  sort: 'time',
  ascending: false,
  top: 10,
  cover: null,
};
const names = (view: Partial<TreeView>): string[] =>
  rowsOfTree(NODES, { ...VIEW, ...view }).map(({ node, rest }) =>
    rest ? `${rest.count} of ${node.name}: ${rest.timePs}` : node.name,
  );

describe('rows of the tree', () => {
  it('are those below open nodes, with the ones the server left out', () => {
    expect(names({})).toEqual(['p1', 'dot', 'dot.1', 'dot.2', '3 of dot: 5', 'add', 'IDLE', 'p2']);
    expect(names({ open: new Set() })).toEqual(['p1', 'IDLE', 'p2']);
  });

  it('are cut at the longest ones', () => {
    expect(names({ top: 1, open: new Set([4]) })).toEqual(['p1', '2 of all: 40']);
  });

  it('cover 90% of their parent, and no more rows than that takes', () => {
    // 60 + 30 of 100 are 90; of dot's 50, 30 + 15 are 45, of which all is needed.
    expect(names({ cover: 0.9, open: new Set() })).toEqual(['p1', 'IDLE', '1 of all: 10']);
    expect(names({ cover: 0.9, open: new Set([4]), top: 1 })).toEqual(['p1', 'IDLE', '1 of all: 10']);
    expect(names({ cover: 0.91, open: new Set() })).toEqual(['p1', 'IDLE', 'p2']);
    expect(names({ cover: 0.6, open: new Set([1, 4]) })).toEqual([
      ...['p1', 'dot', 'dot.1', '4 of dot: 20', '1 of p1: 10', '2 of all: 40'],
    ]);
  });

  it('are chosen and sorted by wasted time', () => {
    const nodes = nodesFrom({
      name: ['all', 'busy', 'slow', 'unknown', 'small'],
      kind: ['all', 'op', 'op', 'op', 'op'],
      parent: [-1, 0, 0, 0, 0],
      n_children: [4, 0, 0, 0, 0],
      self_time_ps: [100, 60, 25, 10, 5],
      wasted_ps: [40, 10, 25, null, 5],
    });
    const shown = (view: Partial<TreeView>): string[] =>
      rowsOfTree(nodes, { ...VIEW, sort: 'wasted', open: new Set(), ...view }).map(({ node, rest }) =>
        rest ? `${rest.count} more, ${rest.timePs}` : node.name,
      );
    expect(shown({})).toEqual(['slow', 'busy', 'small', 'unknown']);
    expect(shown({ top: 1 })).toEqual(['slow', '3 more, 75']);
    // 25 + 10 of 40 are 87.5%, with 5 more all of it.
    expect(shown({ cover: 0.875 })).toEqual(['slow', 'busy', '2 more, 15']);
    expect(shown({ cover: 0.9 })).toEqual(['slow', 'busy', 'small', '1 more, 10']);
  });

  it('are sorted within their parent', () => {
    expect(names({ sort: 'name', ascending: true, open: new Set() })).toEqual(['IDLE', 'p1', 'p2']);
  });

  it('are opened by a search, in names and framework names', () => {
    expect(names({ query: 'jit(f)', open: new Set() })).toEqual(['p1', 'dot', 'dot.1']);
    expect(names({ query: 'nothing' })).toEqual([]);
  });
});

describe('the open rows', () => {
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
    const boxes = boxesOf(NODES, 0).map(({ node, left, width, level }) => [
      node.name,
      level,
      Math.round(left * 100),
      Math.round(width * 100),
    ]);
    expect(boxes).toContainEqual(['all', 0, 0, 100]);
    expect(boxes).toContainEqual(['IDLE', 1, 60, 30]);
    expect(boxes).toContainEqual(['dot.2', 3, 30, 15]);
  });
  it('leaves out boxes too narrow to see', () => {
    const nodes = nodesFrom({
      name: ['all', 'long', 'short'],
      kind: ['all', 'op', 'op'],
      parent: [-1, 0, 0],
      n_children: [2, 0, 0],
      self_time_ps: [1e6, 999_999, 1],
    });
    expect(boxesOf(nodes, 0).map(({ node }) => node.name)).toEqual(['all', 'long']);
  });
});

it('colors by how much of the peak is used', () => {
  expect([0.1, 0.3, 0.6, null].map(bandToken)).toEqual(['--bad', '--warn', '--good', '--c-idle']);
});

describe('the treemap', () => {
  it('gives areas in proportion, within the room, nowhere on one another', () => {
    const areas = squarified([6, 6, 4, 3, 2, 2, 1], { x: 10, y: 20, width: 600, height: 400 });
    expect(areas.map(({ width, height }) => Math.round(width * height))).toEqual([
      60_000, 60_000, 40_000, 30_000, 20_000, 20_000, 10_000,
    ]);
    for (const [i, a] of areas.entries()) {
      expect(Math.min(a.x - 10, a.y - 20, 610 - a.x - a.width, 420 - a.y - a.height)).toBeGreaterThan(-1e-6);
      for (const b of areas.slice(i + 1))
        expect(
          Math.min(a.x + a.width - b.x, b.x + b.width - a.x, a.y + a.height - b.y, b.y + b.height - a.y),
        ).toBeLessThan(1e-6);
      expect(Math.max(a.width / a.height, a.height / a.width)).toBeLessThan(3);
    }
  });
  it('covers the parent, except for what the server left out', () => {
    const tiles = tilesOf(NODES, 0, 1000, 600);
    const tile = (name: string): { x: number; y: number; width: number; height: number } =>
      tiles.find(({ node }) => node.name === name) ?? { x: 0, y: 0, width: 0, height: 0 };
    expect(tiles.map(({ node }) => node.name)).toEqual(
      expect.arrayContaining(['all', 'p1', 'IDLE', 'p2', 'dot', 'dot.1', 'dot.2', 'add']),
    );
    const [dot, one, two] = [tile('dot'), tile('dot.1'), tile('dot.2')];
    expect(one.x).toBeGreaterThanOrEqual(dot.x);
    expect(one.y + one.height).toBeLessThanOrEqual(dot.y + dot.height);
    expect((one.width * one.height) / (two.width * two.height)).toBeCloseTo(2);
    expect(one.width * one.height + two.width * two.height).toBeLessThan(0.95 * dot.width * dot.height); // 5 of 50 are left out
  });
});

describe('inside of a fusion', () => {
  const nodes = nodesFrom({
    name: ['all', 'fusion.1', 'dot'],
    kind: ['all', 'op', 'op'],
    parent: [-1, 0, 0],
    n_children: [2, 0, 0],
    self_time_ps: [100, 80, 20],
    time_fraction: [1, 0.8, 0.2],
    is_fusion: [false, true, false],
  });
  const table = tableFor(OP_PROFILE.op.tables.contents, {
    name: ['add.1', 'dot.2', 'copy.3'],
    flops: [25, 75, 0],
    estimated_fraction: [0.25, 0.75, 0],
    provenance: ['', 'f/dot', ''],
  });
  const contents = insideOf(payloadOf({ tables: { contents: table } }));
  it('is nothing where the program is not known', () => expect(insideOf(payloadOf())).toEqual([]));
  const all = withInside(nodes, new Map([[1, contents]]));
  it('shares are estimates of its time', () => {
    expect(
      all.slice(3).map(({ name, timePs, isEstimate, kind }) => [name, timePs, isEstimate, kind]),
    ).toEqual([
      ['dot.2', 60, true, 'inside'],
      ['add.1', 20, true, 'inside'],
      ['copy.3', 0, true, 'inside'],
    ]);
    expect(all[1]?.nChildren).toBe(3);
    expect(all[4]?.share).toBeCloseTo(0.2);
    expect(nodes[1]?.children).toEqual([]); // the tree itself stays as it was
  });
  it('is in the tree, the flame and the search', () => {
    const rows = (query: string): string[] =>
      rowsOfTree(all, { ...VIEW, open: new Set([1]), query }).map(({ node }) => node.name);
    expect(rows('')).toEqual(['fusion.1', 'dot.2', 'add.1', 'copy.3', 'dot']);
    expect(rows('f/dot')).toEqual(['fusion.1', 'dot.2']);
    expect(boxesOf(all, 1).map(({ node, width }) => [node.name, width])).toEqual([
      ['fusion.1', 1],
      ['dot.2', 0.75],
      ['add.1', 0.25],
    ]);
  });
  it('is requested if a fusion is open', () => {
    expect(fusionsToOpen(nodes, [0, 1, 1, 2, 99]).map(({ name }) => name)).toEqual(['fusion.1']);
  });
});

it('colors boxes by category where no peak is known', () => {
  const nodes = nodesFrom({
    name: ['all', 'dot', 'add', 'dot.1'],
    kind: ['all', 'category', 'category', 'op'],
    parent: [-1, 0, 0, 1],
    n_children: [2, 1, 0, 0],
    self_time_ps: [3, 2, 1, 2],
  });
  const { token, legend } = coloringOf(nodes, 'flops');
  expect(legend.map(({ title }) => title)).toEqual(['dot', 'add']);
  expect(token(nodes[3] as OpNode)).toBe(legend[0]?.token);
  expect(token(nodes[2] as OpNode)).not.toBe(token(nodes[3] as OpNode));
});
