import { describe, expect, it } from 'vitest';
import { inNameOrder, nameOrder, orderKey } from './search';

describe('the order of names', () => {
  it('counts as people do, at the end and within', () => {
    expect(inNameOrder(['fusion.10', 'fusion.9', 'add', 'layer_12/op_2', 'layer_2/op_10', 'fusion'])).toEqual(
      ['add', 'fusion', 'fusion.9', 'fusion.10', 'layer_2/op_10', 'layer_12/op_2'],
    );
  });
  it('knows numbers of any length', () => {
    const powers = Array.from({ length: 30 }, (_, i) => `x${10n ** BigInt(i)}y`);
    expect(inNameOrder([...powers].reverse())).toEqual(powers);
  });
  it('takes no notice of case and of zeros before a number', () => {
    expect(orderKey('Op.007')).toBe(orderKey('op.7'));
    expect(inNameOrder(['b', 'A', 'C', 'x0', 'x00', 'x1'])).toEqual(['A', 'b', 'C', 'x0', 'x00', 'x1']);
  });
  it('leaves names that are alike in the order in which they came', () => {
    expect(nameOrder(Array.from({ length: 12 }, () => 'same'))).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
    ]);
  });
});
