/**
 * Names of tracks become texts that fit their column, cut in the middle, so that what distinguishes them stays:
 *
 *   Framework Ops - from Stream #7(Compute)        Framewor…(Compute)  is the same for two names, so
 *   Framework Ops - from Stream #20(Compute)       Fram…#7(Comp…  and  Fram…#20(Com…  show the difference
 */

const ELLIPSIS = '…';
/** Characters before the place where a name differs from its likes. */
const LEAD = 1;

/** The largest number of characters up to `most` whose text fits; 0 if none does. */
function mostThatFit(most: number, isFitting: (n: number) => boolean): number {
  let [lo, hi] = [0, most];
  while (lo < hi) {
    const middle = (lo + hi + 1) >>> 1;
    if (isFitting(middle)) lo = middle;
    else hi = middle - 1;
  }
  return lo;
}

/** Half of `n` characters from the beginning, half from the end. */
function middleCut(name: string, n: number): string {
  const nTail = Math.floor(n / 2);
  return name.slice(0, n - nTail) + ELLIPSIS + (nTail > 0 ? name.slice(-nTail) : '');
}

/** A third of `n` characters from the beginning, the others from `at` on. */
function cutAround(name: string, n: number, at: number): string {
  const nHead = Math.min(Math.floor(n / 3), at);
  const end = Math.min(name.length, at + n - nHead);
  const from = Math.max(nHead, end - (n - nHead));
  return (
    name.slice(0, nHead) +
    (from > nHead ? ELLIPSIS : '') +
    name.slice(from, end) +
    (end < name.length ? ELLIPSIS : '')
  );
}

function commonPrefix(names: readonly string[]): number {
  const [first = '', ...others] = names;
  let n = 0;
  while (n < first.length && others.every((name) => name[n] === first[n])) n++;
  return n;
}

/** The name as it fits `roomPx`, cut in the middle. */
export function shortName(name: string, roomPx: number, widthOf: (text: string) => number): string {
  if (widthOf(name) <= roomPx) return name;
  return middleCut(
    name,
    mostThatFit(name.length, (n) => widthOf(middleCut(name, n)) <= roomPx),
  );
}

/** Each name as it fits `roomPx`; different names get different texts where the room permits. */
export function shortNames(
  names: readonly string[],
  roomPx: number,
  widthOf: (text: string) => number,
): ReadonlyMap<string, string> {
  const texts = new Map([...new Set(names)].map((name) => [name, shortName(name, roomPx, widthOf)]));
  const alike = new Map<string, string[]>();
  for (const [name, text] of texts) alike.set(text, [...(alike.get(text) ?? []), name]);
  for (const group of alike.values()) {
    if (group.length < 2) continue;
    const at = Math.max(0, commonPrefix(group) - LEAD);
    for (const name of group) {
      const n = mostThatFit(name.length, (count) => widthOf(cutAround(name, count, at)) <= roomPx);
      texts.set(name, cutAround(name, n, at));
    }
  }
  return texts;
}
