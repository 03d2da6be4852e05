import { describe, expect, it } from 'vitest';
import { decodeColumns } from './columns';
import { cellAt, numberAt } from './table';
import type { Column, NumberColumn, Table } from './types';

const findColumn = (table: Table | undefined, name: string): Column | undefined =>
  table?.columns.find((column) => column.name === name);
const rowOf = (table: Table, row: number): unknown =>
  Object.fromEntries(table.columns.map((column) => [column.name, cellAt(column, row)]));

/** Five rows in two parts: 0, 2 and 3 follow one another, 1 and 4 overlap. */
function inParts({ lengthOf = 'length_ps', partOfRow = [0, 1, 0, 0, 1] } = {}): ArrayBuffer {
  const bytes: number[] = [];
  const buffer = (numbers: number[], more: object = {}): object => {
    const offset = bytes.length;
    bytes.push(...numbers, ...new Array<number>((8 - (numbers.length % 8)) % 8).fill(0));
    return { dtype: 'u1', offset, length: numbers.length, delta: false, base: 0, scale: 1, ...more };
  };
  const columns = [
    {
      ...{ name: 'start_ps', title: 'Start', unit: 'ps', kind: 'number' },
      buffers: [
        buffer([0, 3, 3], { delta: true, base: 100, after: lengthOf }),
        buffer([0, 2], { delta: true, base: 5, scale: 10 }),
      ],
    },
    {
      ...{ name: 'length_ps', title: 'Length', unit: 'ps', kind: 'number' },
      buffers: [buffer([7, 20, 9]), buffer([0, 0], { base: 50 })],
    },
    {
      ...{ name: 'name', title: 'Name', unit: '', kind: 'text', strings: ['a', 'b'] },
      buffers: [buffer([1, 0, 1]), buffer([255, 1], { dtype: 'i1' })],
    },
  ];
  const parts = buffer(partOfRow);
  const table = { title: 'Rows', note: '', n_rows: 5, columns, parts };
  const head = new TextEncoder().encode(JSON.stringify({ tables: { rows: table } }));
  const padded = Math.ceil(head.length / 8) * 8;
  const body = new Uint8Array(8 + padded + bytes.length).fill(32, 8, 8 + padded);
  body.set(new TextEncoder().encode('TPC1'));
  new DataView(body.buffer).setUint32(4, padded, true);
  body.set(head, 8);
  body.set(bytes, 8 + padded);
  return body.buffer;
}

interface Part {
  column: Record<string, unknown>;
  dtype: string;
  bytes: ArrayBuffer;
  length: number;
  delta?: boolean;
  base?: number;
  scale?: number;
}

function encode(parts: Part[], nRows: number): ArrayBuffer {
  let offset = 0;
  const columns = parts.map(({ column, dtype, bytes, length, delta = false, base = 0, scale = 1 }) => {
    const buffer = { dtype, offset, length, delta, base, scale };
    offset += Math.ceil(bytes.byteLength / 8) * 8;
    return { ...column, buffer };
  });
  const payload = {
    tool: 't',
    run: 'r',
    hosts: ['h'],
    verdict: null,
    scalars: {},
    tiles: [],
    diagnostics: [],
    tables: { rows: { title: 'Rows – ✓', note: '', columns, n_rows: nRows } },
  };
  const head = new TextEncoder().encode(JSON.stringify(payload));
  const padded = Math.ceil(head.length / 8) * 8;
  const body = new Uint8Array(8 + padded + offset).fill(32, 8, 8 + padded);
  body.set(new TextEncoder().encode('TPC1'));
  new DataView(body.buffer).setUint32(4, padded, true);
  body.set(head, 8);
  let at = 8 + padded;
  for (const { bytes } of parts) {
    body.set(new Uint8Array(bytes), at);
    at += Math.ceil(bytes.byteLength / 8) * 8;
  }
  return body.buffer;
}

const sample = (): ArrayBuffer =>
  encode(
    [
      {
        column: { name: 'name', title: 'Name', unit: '', kind: 'text', strings: ['a', 'b'] },
        dtype: 'i1',
        bytes: new Int8Array([1, -1, 0]).buffer,
        length: 3,
      },
      {
        column: { name: 'start_ps', title: 'Start', unit: 'ps', kind: 'number' },
        dtype: 'u2',
        bytes: new Uint8Array([0, 5, 0x60, 0, 0, 0xea]).buffer,
        length: 3,
        delta: true,
        base: 10,
      },
      {
        column: { name: 'share', title: 'Share', unit: 'fraction', kind: 'number' },
        dtype: 'f8',
        bytes: new Float64Array([0.5, Number.NaN, 1]).buffer,
        length: 3,
      },
      {
        column: { name: 'eager', title: 'Eager', unit: '', kind: 'bool' },
        dtype: 'u1',
        bytes: new Uint8Array([1, 0, 1]).buffer,
        length: 3,
      },
    ],
    3,
  );

describe('decodeColumns', () => {
  it('gives the same cells as JSON would', () => {
    const table = decodeColumns(sample()).tables['rows'] as Table;
    expect(table.title).toBe('Rows – ✓');
    expect([0, 1, 2].map((row) => rowOf(table, row))).toEqual([
      { name: 'b', start_ps: 10, share: 0.5, eager: true },
      { name: null, start_ps: 15, share: null, eager: false },
      { name: 'a', start_ps: 60015, share: 1, eager: true },
    ]);
  });

  it.each([
    ['u1', [0, 7, 255], 100, 1, [100, 107, 355]],
    ['i1', [0, 2, 255], 1000, 256, [1000, 1512, 744]],
    ['u3', [1, 2, 0, 0, 1, 0, 0, 0, 1], 0, 1, [1, 258, 65536]],
    ['i2', [255, 0, 1, 255, 128, 127], 0, 10, [-10, -327680, 325130]],
    ['u7', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 1], 0, 1, [1 + 2 ** 52, 0, 2 ** 48]],
  ])('reads numbers of type %s from planes', (dtype, bytes, base, scale, expected) => {
    const body = encode(
      [
        {
          column: { name: 'x', title: 'X', unit: '', kind: 'number' },
          dtype,
          bytes: new Uint8Array(bytes).buffer,
          length: 3,
          base,
          scale,
        },
      ],
      3,
    );
    const column = findColumn(decodeColumns(body).tables['rows'], 'x') as NumberColumn;
    expect([0, 1, 2].map((row) => numberAt(column, row))).toEqual(expected);
  });

  it('keeps typed arrays', () => {
    const share = findColumn(decodeColumns(sample()).tables['rows'], 'share') as NumberColumn;
    expect(share.values).toBeInstanceOf(Float64Array);
    expect(numberAt(share, 1)).toBeNull();
    expect(cellAt(share, 9)).toBeNull();
  });

  it('joins rows sent in parts, and starts that follow the end of the row before', () => {
    const table = decodeColumns(inParts()).tables['rows'] as Table;
    expect([0, 1, 2, 3, 4].map((row) => rowOf(table, row))).toEqual([
      { start_ps: 100, length_ps: 7, name: 'b' },
      { start_ps: 5, length_ps: 50, name: null },
      { start_ps: 110, length_ps: 20, name: 'a' },
      { start_ps: 133, length_ps: 9, name: 'b' },
      { start_ps: 25, length_ps: 50, name: 'b' },
    ]);
    expect(Object.keys(table)).not.toContain('parts');
  });

  it('refuses parts that do not fit their rows', () => {
    expect(() => decodeColumns(inParts({ lengthOf: 'none' }))).toThrow('which others follow');
    expect(() => decodeColumns(inParts({ partOfRow: [0, 0, 0, 0, 0] }))).toThrow('different parts');
    expect(() => decodeColumns(inParts({ partOfRow: [0, 1, 1, 0, 1] }))).toThrow('another length');
  });

  it.each([0, 4, 7, 12, 60])('refuses a body cut to %i bytes', (length) => {
    expect(() => decodeColumns(sample().slice(0, length))).toThrow();
  });

  it('refuses a body whose last buffer is cut, another format, and an unknown type', () => {
    const body = sample();
    expect(() => decodeColumns(body.slice(0, body.byteLength - 8))).toThrow('beyond the end');
    expect(() => decodeColumns(new TextEncoder().encode('{"tool": "x"}').buffer)).toThrow(
      'not in the binary',
    );
    expect(() =>
      decodeColumns(
        encode(
          [{ column: { name: 'x', kind: 'number' }, dtype: 'i9', bytes: new ArrayBuffer(8), length: 1 }],
          1,
        ),
      ),
    ).toThrow('unknown column type');
  });
});
