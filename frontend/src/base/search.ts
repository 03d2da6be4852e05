/** How typed words match a name (every word somewhere in it, case-insensitive), and how names are ordered. */

export function wordsOf(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

export function matches(text: string, words: readonly string[]): boolean {
  if (!words.length) return true;
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}

const MOST_DIGITS = 9;

/** One or more digits, prefixed so that longer numbers sort last. */
function lengthMark(n: number): string {
  return n < MOST_DIGITS ? String(n) : '9'.repeat(Math.floor(n / MOST_DIGITS)) + String(n % MOST_DIGITS);
}

/**
 * A text whose plain order is the natural order of names: case-insensitive, numbers by their value. Comparing
 * keys is many times faster than collating names.
 */
export function orderKey(name: string): string {
  return name.toLowerCase().replace(/0*(\d+)/g, (_, digits: string) => lengthMark(digits.length) + digits);
}

const PLACE_FROM = 1e9;
const PLACE_DIGITS = 10;

/**
 * The indices of the names in that order. The index is appended to the key: the browser then sorts natively,
 * without a callback per comparison.
 */
export function nameOrder(names: readonly string[]): number[] {
  const keys = names.map((name, i) => `${orderKey(name)}\0${PLACE_FROM + i}`).sort();
  return keys.map((key) => Number(key.slice(-PLACE_DIGITS)) - PLACE_FROM);
}

/** The names in that order. */
export function inNameOrder(names: Iterable<string>): string[] {
  const all = [...names];
  return nameOrder(all).map((i) => all[i] as string);
}
