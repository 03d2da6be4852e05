/**
 * Turns the text typed above a column into a test of its cells.
 *
 *     text    words that all occur; "=name" exactly that
 *     number  "> 1 ms", "<= 10%", "1 ms .. 5 ms", "= 3"; a number alone means "at least"
 */
import { matches, wordsOf } from '../../base/search';

export type Cell = string | number | boolean | null;
export type Test = (cell: Cell) => boolean;

const UNIT_FACTORS: Record<string, Record<string, number>> = {
  ps: { ps: 1, ns: 1e3, us: 1e6, µs: 1e6, μs: 1e6, ms: 1e9, s: 1e12, min: 60e12, h: 3600e12 },
  bytes: {
    b: 1,
    kb: 1e3,
    mb: 1e6,
    gb: 1e9,
    tb: 1e12,
    kib: 1024,
    mib: 1024 ** 2,
    gib: 1024 ** 3,
    tib: 1024 ** 4,
  },
  fraction: { '%': 0.01 },
};
const PREFIXES: Record<string, number> = { k: 1e3, m: 1e6, g: 1e9, t: 1e12, p: 1e15 };
/** The meaning of a number without a unit, per unit of the column. */
const BARE_FACTORS: Record<string, number> = { fraction: 0.01 };

function unitFactor(label: string, unit: string): number | null {
  const lower = label.toLowerCase();
  if (!lower) return BARE_FACTORS[unit] ?? 1;
  const named = UNIT_FACTORS[unit]?.[lower];
  if (named !== undefined) return named;
  return unit in UNIT_FACTORS ? null : (PREFIXES[lower[0] as string] ?? null);
}

/** "1.5 ms" in the column's own unit; null: not a quantity. */
export function parseQuantity(text: string, unit: string): number | null {
  const parts = /^(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*([a-zµμ%/]*)$/i.exec(text.trim());
  if (!parts) return null;
  const factor = unitFactor(parts[2] as string, unit);
  const value = Number((parts[1] as string).replaceAll(',', ''));
  return factor === null || !Number.isFinite(value) ? null : value * factor;
}

function numberTest(text: string, unit: string): Test | null {
  const range = text.split('..');
  if (range.length === 2) {
    const [low, high] = range.map((end) => parseQuantity(end, unit)) as [number | null, number | null];
    if (low === null || high === null) return null;
    return (cell) => typeof cell === 'number' && cell >= low && cell <= high;
  }
  const parts = /^(<=|>=|<|>|=|≤|≥)?(.*)$/.exec(text) as RegExpExecArray;
  const bound = parseQuantity(parts[2] as string, unit);
  if (bound === null) return null;
  const compare: Record<string, (value: number) => boolean> = {
    '<': (value) => value < bound,
    '<=': (value) => value <= bound,
    '≤': (value) => value <= bound,
    '>': (value) => value > bound,
    '=': (value) => Math.abs(value - bound) <= Math.abs(bound) * 1e-9,
  };
  const test = compare[parts[1] ?? ''] ?? ((value: number): boolean => value >= bound);
  return (cell) => typeof cell === 'number' && test(cell);
}

function textTest(text: string): Test {
  if (text.startsWith('=')) {
    const exact = text.slice(1);
    return (cell) => cell === exact;
  }
  const words = wordsOf(text);
  return (cell) => typeof cell === 'string' && matches(cell, words);
}

/** The test that a filter's text means; null: it is invalid. An empty text passes all. */
export function parseFilter(text: string, kind: 'text' | 'number' | 'bool', unit: string): Test | null {
  const trimmed = text.trim();
  if (!trimmed) return () => true;
  if (kind === 'number') return numberTest(trimmed, unit);
  if (kind === 'text') return textTest(trimmed);
  const flag = { yes: true, no: false, true: true, false: false }[trimmed.toLowerCase()];
  return flag === undefined ? null : (cell) => cell === flag;
}
