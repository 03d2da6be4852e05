import { describe, expect, it } from 'vitest';
import type { Table, ToolInfo } from '../api/types';
import { readTable } from '../api/declared';
import { HLO_STATS } from '../api/tables/hlo_stats';
import { payloadOf, tableFor } from './testing';
import { idleColumns, opChoice, rowOfOp, serverParams, sideToken, tableData } from './tool';

const SPEC = HLO_STATS.page.tables.ops;
const table: Table = {
  title: '',
  note: '',
  n_rows: 2,
  columns: [
    {
      name: 'where',
      title: 'Where',
      unit: '',
      kind: 'text',
      strings: ['Host', 'Device'],
      codes: [0, 1],
      description: 'Which side',
    },
    { name: 'bound', title: 'Bound', unit: '', kind: 'text', strings: ['Unknown'], codes: [0, 0] },
    { name: 'flops', title: 'FLOPs', unit: 'count', kind: 'number', values: [null, null] },
    { name: 'n', title: 'N', unit: 'count', kind: 'number', values: [1, 1] },
  ],
};

describe('a payload table', () => {
  it('becomes columns, all or some, in the requested order', () => {
    const data = tableData(table, ['n', 'gone', 'where']);
    expect(data.columns.map(({ name, description }) => [name, description])).toEqual([
      ['n', undefined],
      ['where', 'Which side'],
    ]);
    expect(data.columns.map((column) => column.cell(1))).toEqual([1, 'Device']);
  });
  it('has columns without information: unknown, or one word throughout', () =>
    expect(idleColumns(tableData(table))).toEqual(['bound', 'flops']));
  it('has bars in the color of the side', () =>
    expect([0, 1].map(sideToken((row) => ['Host', 'Device'][row] ?? ''))).toEqual([
      '--c-host',
      '--c-compute',
    ]));
});

it('finds the row of the operation that a link names, of the program that it names', () => {
  const table = tableFor(SPEC, { op: ['dot', 'add', 'dot'], program: ['p', 'p', 'q'] });
  const ops = readTable(payloadOf({ tables: { ops: table } }), SPEC);
  expect([rowOfOp(ops, 'q', 'dot'), rowOfOp(ops, '', 'dot'), rowOfOp(ops, 'p', 'mul')]).toEqual([2, 0, -1]);
  expect(opChoice(ops, 2, false)).toEqual({ program: 'q', op: 'dot' });
  expect(opChoice(ops, 2, true)).toEqual({ program: undefined, op: undefined });
});

describe('parameters', () => {
  it('of the page are not sent to the server', () => {
    const info = { params: [{ name: 'idle' }] } as unknown as ToolInfo;
    expect(serverParams(info, { idle: 'false', sort: '-n', q: 'x' })).toEqual({ idle: 'false' });
  });
});
