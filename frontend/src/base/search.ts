/** How typed words match a name: every word somewhere in it, upper and lower case alike. */

export function wordsOf(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

export function matches(text: string, words: readonly string[]): boolean {
  if (!words.length) return true;
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}
