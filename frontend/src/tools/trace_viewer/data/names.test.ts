import { describe, expect, it } from 'vitest';
import type { Table, TextColumn } from '../../../api/types';
import { decodeWindow } from './model';
import { FAMILIES, styleOf } from './names';
import { number, PAYLOAD, table } from '../testing';

describe('names', () => {
  it("takes the server's word for family and shade, whatever it is", () => {
    expect(styleOf(3, 9)).toBe(styleOf(3, 1));
    expect(styleOf(99, 0)).toBe(0);
    const table0 = PAYLOAD.tables.boxes as Table;
    const others = table0.columns.filter(({ name }) => name !== 'family');
    const boxes = table([...others, number('family', [3, 1, 1, 1, 5])], 5);
    const colors = table([number('color_key', [10, 11, 12, 13])], 4);
    const { style } = decodeWindow(
      { ...PAYLOAD, tables: { ...PAYLOAD.tables, boxes, colors } },
      { startPs: 0, endPs: 10, widthPx: 10, trackIds: null, hasFlows: false },
    ).boxes;
    const codes = (table0.columns.find(({ kind }) => kind === 'text') as TextColumn).codes;
    expect([...style]).toEqual(
      [3, 1, 1, 1, 5].map((family, i) => styleOf(family, (codes[i] ?? 0) < 0 ? 0 : (codes[i] ?? 0) + 10)),
    );
    expect(Math.max(...style)).toBeLessThan(FAMILIES.length * 8);
  });
});
