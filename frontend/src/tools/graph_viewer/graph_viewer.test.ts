import { describe, expect, it } from 'vitest';
import { payloadOf, scalarsOf, tableFor } from '../testing';
import { layoutOf } from './layout';
import { widthOf } from './placed';
import {
  classesOf,
  graphOf,
  hiddenOperands,
  hiddenUsers,
  nextNode,
  programsOf,
  shapeOf,
  shortened,
  TABLES,
  timeOf,
  toggled,
  type Graph,
} from './model';

const payload = payloadOf({
  scalars: scalarsOf({ center: 2, n_cut: 3 }),
  tables: {
    nodes: tableFor(TABLES.nodes, {
      node: [1, 2, 3, 4, 5],
      name: ['p', 'fusion.1', 'exp', 'add', 'dot'],
      opcode: ['parameter', 'fusion', 'exponential', 'add', 'dot'],
      op_class: ['input', 'fusion', 'elementwise', 'elementwise', 'matrix'],
      shape: ['f32[2]{0}', 'f32[2]{0}', 'f32[2]{0}', 'f32[2]{0}', 'bf16[8,128]{1,0:T(8,128)}'],
      frame: [-1, -1, 2, 2, -1],
      depth: [1, 0, 0, 0, 1],
      time_ps: [null, null, null, null, 2_000_000],
      time_fraction: [null, null, null, null, 0.25],
      calls: ['', 'body', '', '', ''],
    }),
    edges: tableFor(TABLES.edges, {
      from: [1, 3, 4, 9],
      to: [3, 4, 5, 1],
      operand: [0, 0, 1, 0],
      shape: ['f32[2]', 'f32[2]', 'f32[2]', 'x'],
    }),
  },
});
const opened = graphOf(payload);
const graph: Graph = {
  ...opened,
  nodes: opened.nodes.map((node) => (node.id === 2 ? { ...node, isFrame: true } : node)),
};

describe('the graph', () => {
  it('has the edges whose ends are shown', () => {
    expect(opened.edges.map(({ from, to }) => [from, to])).toEqual([
      [1, 3],
      [3, 4],
      [4, 5],
    ]);
    expect([opened.center, opened.nCut]).toEqual([2, 3]);
    expect(opened.nodes[1]?.calls).toEqual(['body']);
  });

  it("is laid out with producers above, and a frame around a fusion's instructions", () => {
    const placed = layoutOf(graph);
    const y = (id: number): number => placed.at.get(id)?.y ?? Number.NaN;
    expect(y(1)).toBeLessThan(y(3));
    expect(y(3)).toBeLessThan(y(4));
    expect(y(4)).toBeLessThan(y(5));
    const frame = placed.frames[0]!;
    expect(placed.frames).toHaveLength(1);
    for (const id of [3, 4]) {
      expect(y(id)).toBeGreaterThan(frame.y - frame.height / 2);
      expect(y(id)).toBeLessThan(frame.y + frame.height / 2);
    }
    expect(placed.links.every(({ path, label }) => path.startsWith('M') && label)).toBe(true);
    const boxes = [...placed.at.values()];
    for (const a of boxes)
      for (const b of boxes)
        if (a !== b)
          expect(
            Math.abs(a.x - b.x) >= (a.width + b.width) / 2 ||
              Math.abs(a.y - b.y) >= (a.height + b.height) / 2,
          ).toBe(true);
  });

  it('stays in its place when the times come', () => {
    const names = new Set(['time_ps', 'time_fraction']);
    const nodes = payload.tables['nodes']!;
    const early = graphOf({
      ...payload,
      tables: {
        ...payload.tables,
        nodes: { ...nodes, columns: nodes.columns.filter(({ name }) => !names.has(name)) },
      },
    });
    expect(early.nodes.map(({ awaitsTime, timePs }) => [awaitsTime, timePs])).toEqual(
      Array(5).fill([true, null]),
    );
    const timed = graphOf({
      ...payload,
      tables: {
        ...payload.tables,
        nodes: {
          ...nodes,
          columns: nodes.columns.map((column) =>
            names.has(column.name) ? { ...column, values: [1, 1, 1, 1, 1] } : column,
          ),
        },
      },
    });
    expect(timed.nodes.every(({ awaitsTime }) => !awaitsTime)).toBe(true);
    const [before, after] = [layoutOf(early).at, layoutOf(timed).at];
    for (const [id, { y, height }] of before) expect(after.get(id)).toMatchObject({ y, height });
  });

  it('is walked by arrow keys', () => {
    const { at } = layoutOf(graph);
    expect(nextNode(graph, at, 3, 'ArrowUp')).toBe(1);
    expect(nextNode(graph, at, 3, 'ArrowDown')).toBe(4);
    expect(nextNode(graph, at, 1, 'ArrowUp')).toBeNull();
    expect(nextNode(graph, at, 1, 'x')).toBeNull();
  });
});

describe('words of a node', () => {
  it('has room for the number of hidden operands', () => {
    const node = { ...graph.nodes[4]!, nHiddenUsers: 1200, nHiddenOperands: 2 };
    expect([hiddenOperands(node), hiddenUsers(node), hiddenUsers(graph.nodes[4]!)]).toEqual([
      '+2 ↑',
      '+1,200 ↓',
      '',
    ]);
    expect(widthOf({ ...node, name: 'n'.repeat(30) })).toBeGreaterThan(
      widthOf({ ...graph.nodes[4]!, name: 'n'.repeat(30) }),
    );
  });

  it('are its shape without layout and its time with its share', () => {
    const dot = opened.nodes[4]!;
    expect(shapeOf(dot)).toBe('bf16[8,128]');
    expect(timeOf(dot)).toBe('2.00\u00a0µs · 25.0%');
    expect(timeOf(opened.nodes[0]!)).toBe('');
  });

  it('keep beginning and end of long names', () => {
    expect(shortened('abc', 5)).toBe('abc');
    expect(shortened('broadcast_multiply_fusion.1234', 16)).toBe('broadcast_….1234');
    expect(shortened('x'.repeat(50), 16)).toHaveLength(16);
  });
});

it('fusions are opened and closed one by one', () => {
  expect(toggled(undefined, 'a')).toBe('a');
  expect(toggled('a', 'b')).toBe('a,b');
  expect(toggled('a,b', 'a')).toBe('b');
  expect(toggled('a', 'a')).toBeUndefined();
});

it('programs are listed by time, classes in a fixed order', () => {
  const programs = tableFor(TABLES.programs, { program: ['a', 'b', 'c'], time_ps: [1, null, 5_000_000] });
  expect(programsOf(payloadOf({ tables: { programs } })).map(({ label }) => label)).toEqual([
    'c · 5.00\u00a0µs',
    'a · 1\u00a0ps',
    'b',
  ]);
  expect(classesOf(opened.nodes)).toEqual(['matrix', 'fusion', 'elementwise', 'input']);
});
