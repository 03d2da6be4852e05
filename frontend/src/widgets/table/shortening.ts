/**
 * Shortens the names of a column so that its rows still differ: of a path the segments that few names share
 * are kept, of a stack of calls the innermost one and those that few stacks share, of another name its
 * beginning and its end. Pure.
 */

const GAP = '…';
/** Names that are examined to see which parts distinguish them. */
const EXAMINED = 2000;
/** Shares of the room that the beginning of a name gets; the first of equal ones is taken. */
const HEADS = [0.55, 0.3, 0.8] as const;
/** Characters of a last segment that are still recognized. */
const LEAST_END = 7;
const SEPARATORS = /(\/|::)/;
/** PyTorch's stacks, the innermost call first: `/a/conv.py(440): forward;/b/net.py(9): step`. */
const STACK = /^[^;]+\(\d+\): [^;]+;/;
const FOLDERS = /^.*\//;

export type Shorten = (text: string, nChars: number) => string;

function middleCut(text: string, nChars: number, head: number): string {
  if (text.length <= nChars) return text;
  const room = Math.max(1, nChars - GAP.length);
  const nHead = Math.max(1, Math.round(room * head));
  const nTail = room - nHead;
  return text.slice(0, nHead) + GAP + (nTail > 0 ? text.slice(-nTail) : '');
}

interface Path {
  segments: string[];
  separator: string;
}

/**
 * The segments of a path of scopes, stages or calls (the innermost last); null: the name is none, such as a
 * C++ type.
 */
function pathOf(text: string): Path | null {
  if (STACK.test(text)) {
    const calls = text.split(';').map((call) => call.replace(FOLDERS, ''));
    return { segments: calls.reverse(), separator: ' › ' };
  }
  if (/[<>\s]/.test(text)) return null;
  const parts = text.split(SEPARATORS);
  const segments = parts.filter((_, i) => i % 2 === 0);
  return segments.length > 2 ? { segments, separator: parts[1] ?? '/' } : null;
}

function joined({ segments, separator }: Path, kept: ReadonlySet<number>): string {
  const words: string[] = [];
  segments.forEach((segment, i) => {
    if (kept.has(i)) words.push(segment);
    else if (words.at(-1) !== GAP) words.push(GAP);
  });
  return words.join(separator);
}

/** Keeps the last segment, then those that fewest names share, as far as there is room. */
function shortPath(path: Path, nChars: number, head: number, sharing: (segment: string) => number): string {
  const last = path.segments.length - 1;
  const kept = new Set([last]);
  const others = path.segments.map((_, i) => i).filter((i) => i < last);
  const shares = path.segments.map(sharing);
  others.sort((a, b) => (shares[a] as number) - (shares[b] as number) || b - a);
  for (const i of others) {
    kept.add(i);
    if (joined(path, kept).length > nChars) kept.delete(i);
  }
  const end = path.segments[last] as string;
  const rarest = shares[others[0] ?? last];
  if (others.some((i) => kept.has(i) && shares[i] === rarest)) return joined(path, kept);
  // The rarest segment tells more than the whole of a long last one.
  const short = joined({ ...path, segments: path.segments.with(last, '') }, new Set([others[0] ?? 0, last]));
  const room = nChars - short.length;
  if (room >= LEAST_END) return short + middleCut(end, room, head);
  const text = joined(path, kept);
  return text.length <= nChars ? text : middleCut(end, nChars, head);
}

function pushTo(groups: Map<string, string[]>, key: string, name: string): void {
  const group = groups.get(key);
  if (group) group.push(name);
  else groups.set(key, [name]);
}

/** How many of the names have a segment. */
function segmentCounts(names: readonly string[]): (segment: string) => number {
  const counts = new Map<string, number>();
  for (const name of names)
    for (const segment of new Set(pathOf(name)?.segments))
      counts.set(segment, (counts.get(segment) ?? 0) + 1);
  return (segment) => counts.get(segment) ?? 0;
}

/** The same among the names with the same last segment, which is always shown. */
function countsByEnd(names: readonly string[]): (end: string) => (segment: string) => number {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const end = pathOf(name)?.segments.at(-1);
    if (end !== undefined) pushTo(groups, end, name);
  }
  const counts = new Map([...groups].map(([end, group]) => [end, segmentCounts(group)]));
  return (end) => counts.get(end) ?? (() => 0);
}

/** Of names that are no paths: the share of the beginning at which most of them still differ. */
function bestHead(names: readonly string[], nChars: number): number {
  const long = names.filter((name) => name.length > nChars && !pathOf(name));
  const nDistinct = HEADS.map((head) => new Set(long.map((name) => middleCut(name, nChars, head))).size);
  return HEADS[nDistinct.indexOf(Math.max(...nDistinct))] ?? HEADS[0];
}

function byText(texts: Iterable<[string, string]>): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const [name, text] of texts) pushTo(groups, text, name);
  return groups;
}

/**
 * The paths that would read the same, cut anew by what distinguishes them from one another, where fewer names
 * then read the same.
 */
function distinguished(
  short: ReadonlyMap<string, string>,
  nChars: number,
  head: number,
): Map<string, string> {
  const alike = byText(short);
  const again = new Map<string, string>();
  for (const group of alike.values()) {
    if (group.length < 2) continue;
    const sharing = segmentCounts(group);
    for (const name of group) again.set(name, shortPath(pathOf(name) as Path, nChars, head, sharing));
  }
  const alikeAgain = byText(again);
  const nAlike = (groups: Map<string, string[]>, text: string): number => groups.get(text)?.length ?? 0;
  return new Map(
    [...again].filter(
      ([name, text]) =>
        nAlike(alikeAgain, text) + nAlike(alike, text) < nAlike(alike, short.get(name) as string),
    ),
  );
}

/** Shortens names of a column whose distinct names (or the first of them) are these. */
export function shortener(names: Iterable<string>): Shorten {
  const examined: string[] = [];
  for (const name of names) {
    if (examined.length >= EXAMINED) break;
    examined.push(name);
  }
  const byEnd = countsByEnd(examined);
  const sharing = (path: Path): ((segment: string) => number) => byEnd(path.segments.at(-1) as string);
  const cuts = new Map<number, { head: number; apart: ReadonlyMap<string, string> }>();
  const cutsFor = (nChars: number): { head: number; apart: ReadonlyMap<string, string> } => {
    const known = cuts.get(nChars);
    if (known) return known;
    const head = bestHead(examined, nChars);
    const short = new Map<string, string>();
    for (const name of examined) {
      const path = name.length > nChars ? pathOf(name) : null;
      if (path) short.set(name, shortPath(path, nChars, head, sharing(path)));
    }
    const made = { head, apart: distinguished(short, nChars, head) };
    cuts.set(nChars, made);
    return made;
  };
  return (text, nChars) => {
    if (text.length <= nChars) return text;
    const { head, apart } = cutsFor(nChars);
    const path = pathOf(text);
    if (!path) return middleCut(text, nChars, head);
    return apart.get(text) ?? shortPath(path, nChars, head, sharing(path));
  };
}
