import { describe, expect, it } from 'vitest';
import { parseZoom, stepAxis, zoomText } from './step_axis';

describe('the axis of steps', () => {
  it('says once what all steps are called', () => {
    expect(stepAxis(['train 23', 'train 24'])).toEqual({ name: 'train', labels: ['23', '24'] });
    expect(stepAxis(['train 23', 'eval 24'])).toEqual({ name: 'step', labels: ['train 23', 'eval 24'] });
    expect(stepAxis(['3', '4'])).toEqual({ name: 'step', labels: ['3', '4'] });
    expect(stepAxis([])).toEqual({ name: 'step', labels: [] });
  });

  it.each([
    ['2..8', [2, 8]],
    ['2..99', [2, 9]],
    ['8..2', null],
    ['x', null],
    [undefined, null],
  ])('zoom %s', (text, expected) => expect(parseZoom(text, 10)).toEqual(expected));

  it('takes a zoom event of a slider or of the wheel; all steps are no zoom', () => {
    expect(zoomText({ start: 20, end: 80 }, 11)).toBe('2..8');
    expect(zoomText({ batch: [{ start: 0, end: 50 }] }, 11)).toBe('0..5');
    expect(zoomText({ start: 0, end: 100 }, 11)).toBeUndefined();
  });
});
