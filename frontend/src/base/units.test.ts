import { describe, expect, it } from 'vitest';
import { dateText, exactText, format, formatRange, plural, scaleFor, threeDigits, unbroken } from './units';

const text = (value: number | null, unit: string): string => format(value, unit).replace('\u00a0', ' ');

describe('format', () => {
  it.each([
    [0, 'ps', '0 s'],
    [812, 'ps', '812 ps'],
    [1500, 'ps', '1.50 ns'],
    [812e6, 'ps', '812 µs'],
    [12.4e9, 'ps', '12.4 ms'],
    [999.96e9, 'ps', '1.00 s'],
    [119e12, 'ps', '119 s'],
    [150e12, 'ps', '2.50 min'],
    [9000e12, 'ps', '2.50 h'],
    [-7.7e9, 'ps', '-7.70 ms'],
    [512, 'bytes', '512 B'],
    [3.1 * 1024 ** 3, 'bytes', '3.10 GiB'],
    [0.6209, 'fraction', '62.1%'],
    [1, 'fraction', '100%'],
    [0, 'fraction', '0%'],
    [0.00001, 'fraction', '< 0.01%'],
    [78.2e9, 'flops_per_s', '78.2 GFLOP/s'],
    [180e9, 'bytes_per_s', '180 GB/s'],
    [0.25, 'flops_per_byte', '0.250 FLOP/B'],
    [1234, 'count', '1,234'],
    [1720000, 'count', '1.72 M'],
    [1234567, 'id', '1234567'],
    [null, 'ps', '—'],
    [Number.NaN, 'fraction', '—'],
    [Number.POSITIVE_INFINITY, 'ps', '—'],
  ])('%s %s is %s', (value, unit, expected) => {
    expect(text(value, unit)).toBe(expected);
  });

  it('keeps three digits where rounding makes a new one', () => {
    expect(threeDigits(9.996)).toBe('10.0');
    expect(threeDigits(99.96)).toBe('100');
    expect(threeDigits(0.09999)).toBe('0.100');
  });
});

describe('exactText', () => {
  it('shows all digits', () => {
    expect(exactText(12_400_000_123, 'ps')).toBe('12,400,000,123 ps');
    expect(exactText(0.1 + 0.2, 'fraction')).toBe('30%');
    expect(exactText(null, 'ps')).toBe('unknown');
  });
});

describe('others', () => {
  it('scales an axis by its largest value', () => {
    expect(scaleFor(15e9, 'ps')).toEqual({ factor: 1e9, label: 'ms' });
    expect(scaleFor(150e12, 'ps')).toEqual({ factor: 60e12, label: 'min' });
  });
  it('writes dates and plurals', () => {
    expect(dateText('2026-11-20T22:13:00Z')).toBe('20 Nov 2026 22:13');
    expect(dateText(null)).toBe('—');
    expect(plural(1, 'host')).toBe('1 host');
    expect(plural(1200, 'host')).toBe('1,200 hosts');
  });
});

describe('unbroken', () => {
  it.each([
    ['15.8 ms, 26.6% of it', '15.8_ms, 26.6% of it'],
    ['4.47 GFLOP/s of 918 TFLOP/s a core', '4.47_GFLOP/s of 918_TFLOP/s a core'],
    ['20 GiB at 2.46 s; < 0.01%', '20_GiB at 2.46_s; <_0.01%'],
    ['± 1.76 ms', '±_1.76_ms'],
    ['4 simple steps, 5 slow, 2 B-trees', '4 simple steps, 5 slow, 2 B-trees'],
  ])('%s', (text, expected) => {
    expect(unbroken(text).replace(/\u00a0/g, '_')).toBe(expected);
  });
});

describe('formatRange', () => {
  it.each([
    [5.1e9, 5.4e9, '5.10–5.40 ms'],
    [900e6, 1.6e9, '0.900–1.60 ms'],
    [7.7e9, 7.7e9, '7.70 ms'],
    [null, 1, '—'],
    [Number.NaN, 1, '—'],
  ])('%s to %s is %s', (low, high, expected) =>
    expect(formatRange(low, high, 'ps').replace('\u00a0', ' ')).toBe(expected),
  );
});
