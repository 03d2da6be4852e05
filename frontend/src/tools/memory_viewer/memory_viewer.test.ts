import { describe, expect, it } from 'vitest';
import { readTable } from '../../api/declared';
import { payloadOf, tableFor } from '../testing';
import {
  blockAt,
  boxAt,
  buffersOf,
  colorKey,
  colorsOf,
  edgesOf,
  inOrder,
  pointAt,
  programsOf,
  spacesOf,
  stepParams,
  TABLES,
  zoomed,
} from './model';

const live = tableFor(TABLES.live, {
  buffer_id: [1, 2, 3],
  instruction: ['p', 'dot.1', 'add.2'],
  opcode: ['parameter', 'dot', 'add'],
  category: ['Parameter', 'Temporary', 'Temporary'],
  size_bytes: [100, 300, 600],
  offset_bytes: [null, 0, 200],
  first_step: [0, 2, 4],
  last_step: [9, 5, 8],
});
const buffers = buffersOf(readTable(payloadOf({ tables: { live } }), TABLES.live));

describe('buffers', () => {
  it('are side by side in proportion, and found under the pointer', () => {
    const edges = edgesOf(buffers);
    expect([...edges]).toEqual([0, 0.1, 0.4, 1]);
    expect([0, 0.099, 0.1, 0.39, 0.4, 0.999].map((share) => boxAt(edges, share))).toEqual([0, 0, 1, 1, 2, 2]);
    expect([boxAt(edges, -0.1), boxAt(edges, 1), boxAt(edgesOf([]), 0.5)]).toEqual([-1, -1, -1]);
  });

  it('are ordered by size without changing the list', () => {
    expect(inOrder(buffers, 'size').map(({ id }) => id)).toEqual([3, 2, 1]);
    expect(inOrder(buffers, 'program').map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  it('have the color of their kind, temporaries that of their opcode', () => {
    expect(buffers.map(colorKey)).toEqual(['Parameter', 'dot', 'add']);
    const colors = colorsOf([buffers]);
    expect(colors.legend.map(({ name }) => name)).toEqual(['add', 'dot', 'Parameter']);
    expect(new Set(buffers.map((buffer) => colors.token(buffer))).size).toBe(3);
  });

  it('are gray beyond the palette, and the legend says so', () => {
    const many = Array.from({ length: 12 }, (_, i) => ({
      ...buffers[1]!,
      opcode: `op${i}`,
      sizeBytes: 100 - i,
    }));
    const colors = colorsOf([many]);
    expect(colors.legend.at(-1)).toEqual({ name: 'others', token: '--line-strong' });
    expect(colors.token(many[11]!)).toBe('--line-strong');
  });
});

describe('the map', () => {
  it('finds the block at a step and an offset, of several the last to come', () => {
    expect(blockAt(buffers, 3, 10)?.id).toBe(2);
    expect(blockAt(buffers, 4.5, 250)?.id).toBe(3);
    expect(blockAt(buffers, 5.9, 299)?.id).toBe(3);
    expect(blockAt(buffers, 6, 10)).toBeNull();
    expect(blockAt(buffers, 3, 900)).toBeNull();
  });
});

describe('steps', () => {
  const points = [2, 5, 9].map((step) => ({ step, heldBytes: step, unpaddedBytes: 0, instruction: '' }));

  it('hold until the next point', () => {
    expect([0, 2, 4, 5, 100].map((step) => pointAt(points, step)?.step)).toEqual([2, 2, 2, 5, 9]);
    expect(pointAt([], 3)).toBeNull();
  });

  it('zoom about a step and stay within the program', () => {
    expect(zoomed({ first: 0, last: 99 }, 100, 0.5, 50)).toEqual({ first: 25, last: 74 });
    expect(zoomed({ first: 25, last: 74 }, 100, 4, 50)).toEqual({ first: 0, last: 99 });
    expect(zoomed({ first: 90, last: 99 }, 100, 0.1, 99)).toEqual({ first: 95, last: 98 });
  });

  it('take no place in the link where all are shown', () => {
    expect(stepParams({ first: 0, last: 99 }, 100)).toEqual({ first_step: undefined, last_step: undefined });
    expect(stepParams({ first: 3, last: 99 }, 100)).toEqual({ first_step: '3', last_step: '99' });
  });
});

describe('choices', () => {
  it('list programs by peak and spaces with theirs', () => {
    const programs = tableFor(TABLES.programs, { program: ['a', 'b', 'c'], peak_bytes: [1, null, 5] });
    const spaces = tableFor(TABLES.spaces, {
      space: [0, 5],
      name: ['HBM', 'Host memory'],
      peak_bytes: [2048, 0],
    });
    const payload = payloadOf({ tables: { programs, spaces } });
    expect(programsOf(payload).map(({ title }) => title)).toEqual(['c', 'a', 'b']);
    expect(spacesOf(payload)).toEqual([
      { value: '0', title: 'HBM 2.00\u00a0KiB' },
      { value: '5', title: 'Host memory 0\u00a0B' },
    ]);
  });
});
