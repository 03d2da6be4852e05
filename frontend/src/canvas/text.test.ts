import { describe, expect, it, vi } from 'vitest';
import { charactersWithin, TextFitter } from './text';
import { countLabel } from './labels';

/** Every character 10 px wide, the ellipsis too. */
const tens = (): number => 10;

describe('TextFitter', () => {
  it('leaves what fits, cuts what does not, and gives up below two letters', () => {
    const fitter = new TextFitter(tens);
    expect(fitter.fit('fusion', 60)).toBe('fusion');
    expect(fitter.fit('fusion', 59)).toBe('fusi…');
    expect(fitter.fit('fusion', 30)).toBe('fu…');
    expect(fitter.fit('fusion', 29)).toBe('');
    expect(fitter.fit('', 100)).toBe('');
  });
  it('measures each character once', () => {
    const measure = vi.fn(tens);
    const fitter = new TextFitter(measure);
    fitter.fit('aaaa', 20);
    fitter.fit('aaaa', 20);
    fitter.fit('aab', 20);
    expect(measure).toHaveBeenCalledTimes(3);
  });
  it('cuts endless names', () => {
    expect(new TextFitter(tens).fit('x'.repeat(100_000), 1e7).length).toBe(401);
  });
  it('counts characters by their running widths', () => {
    expect(charactersWithin(Float32Array.of(5, 10, 15), 10)).toBe(2);
    expect(charactersWithin(Float32Array.of(), 10)).toBe(0);
  });
});

describe('countLabel', () => {
  it('says how many events a box hides', () => {
    expect([214, 48_211, 2_345_678].map(countLabel)).toEqual(['214 events', '48k events', '2.3M events']);
  });
});
