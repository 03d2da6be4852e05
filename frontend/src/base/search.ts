/**
 * How typed words match a name (every word somewhere in it, upper and lower case alike), and in which order
 * names stand.
 */

export function wordsOf(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

export function matches(text: string, words: readonly string[]): boolean {
  if (!words.length) return true;
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}

const MOST_DIGITS = 9;

/** A digit or more that sort as the number of digits does. */
function lengthMark(n: number): string {
  return n < MOST_DIGITS ? String(n) : '9'.repeat(Math.floor(n / MOST_DIGITS)) + String(n % MOST_DIGITS);
}

/**
 * A text whose plain order is that of names as people read them: upper and lower case alike, numbers by their
 * value. Comparing keys is many times as fast as collating names.
 */
export function orderKey(name: string): string {
  return name.toLowerCase().replace(/0*(\d+)/g, (_, digits: string) => lengthMark(digits.length) + digits);
}

const PLACE_FROM = 1e9;
const PLACE_DIGITS = 10;

/**
 * The places of the names, in that order. The place stands behind the key: so the browser sorts by itself,
 * without a call for each comparison.
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
