import { describe, expect, it } from 'vitest';
import { niceStep, rulerOf, tickLabel, timeLabel } from './ticks';

const labels = (startPs: number, endPs: number, widthPx = 1000): string[] => {
  const ruler = rulerOf({ startPs, endPs }, widthPx);
  return Array.from({ length: ruler.nTicks }, (_, index) => tickLabel(ruler, index));
};

describe('the ruler', () => {
  it('takes round steps', () => {
    expect([1, 1.1, 3, 7, 12, 60].map(niceStep)).toEqual([1, 2, 5, 10, 20, 100]);
  });
  it('labels with units, without needless zeros', () => {
    expect(labels(0, 1.02e12)).toEqual(['0', '200 ms', '400 ms', '600 ms', '800 ms', '1 s']);
    expect(labels(200e9, 240e9)[0]).toBe('200 ms');
    expect(labels(0.9e12, 1.3e12)).toEqual([
      '900 ms',
      '950 ms',
      '1 s',
      '1.05 s',
      '1.10 s',
      '1.15 s',
      '1.20 s',
      '1.25 s',
      '1.30 s',
    ]);
  });
  it('names the base once where labels would get long', () => {
    const ruler = rulerOf({ startPs: 204_118_203_450, endPs: 204_118_205_450 }, 1000);
    expect(ruler.baseLabel).toBe('204.118202 ms');
    expect(tickLabel(ruler, 0)).toBe('+1.5 ns');
  });
  it('keeps labels apart', () => {
    for (const span of [1e3, 7.7e5, 3.3e9, 9e15]) expect(labels(0, span).length).toBeLessThanOrEqual(11);
  });
  it('writes times to the nanosecond', () => {
    expect(timeLabel(204_118_203_000, 1000)).toBe('204.118203 ms');
    expect(timeLabel(0, 1000)).toBe('0');
  });
});

describe('the ruler of a long trace', () => {
  const S = 1e12;
  it('counts hours, minutes and seconds', () => {
    expect(labels(0, 3.3 * 3600 * S)).toEqual([
      '0',
      '30 min',
      '1 h',
      '1 h 30 min',
      '2 h',
      '2 h 30 min',
      '3 h',
    ]);
    expect(labels(200_000 * S, 200_060 * S)).toEqual([
      '55 h 33 min 20 s',
      '55 h 33 min 30 s',
      '55 h 33 min 40 s',
      '55 h 33 min 50 s',
      '55 h 34 min',
      '55 h 34 min 10 s',
      '55 h 34 min 20 s',
    ]);
    expect(labels(0, 312 * 3600 * S).slice(0, 3)).toEqual(['0', '48 h', '96 h']);
  });
  it('stays as it is below two minutes', () => {
    expect(labels(0, 119 * S)).toEqual(['0', '20 s', '40 s', '60 s', '80 s', '100 s']);
  });
  it('names the base once where a step is less than a second', () => {
    const ruler = rulerOf({ startPs: 11_604.97 * S, endPs: 11_604.971 * S }, 1000);
    expect(ruler.baseLabel).toBe('3 h 13 min 24.970 s');
    expect(tickLabel(ruler, 1)).toBe('+200 µs');
  });
  it('writes times exactly, and never 60 s', () => {
    expect(timeLabel(11_604_970_843_832_000, 1000)).toBe('3 h 13 min 24.970843832 s');
    expect(timeLabel(179.9999 * S, S)).toBe('3 min');
    expect(timeLabel(7200 * S, S)).toBe('2 h');
  });
});
