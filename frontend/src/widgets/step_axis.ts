/** The axis of a chart of steps: the names' common prefix, stated once, and the zoom as URL text. Pure. */

/** "train 23", "train 24" … as the axis "train" with 23, 24 …: the words that all names begin with, once. */
export function stepAxis(names: readonly string[]): { name: string; labels: string[] } {
  const word = /^(.*\D)\s+\d+$/.exec(names[0] ?? '')?.[1] ?? '';
  const isShared =
    word !== '' &&
    names.every((name) => name.startsWith(`${word} `) && /^\d+$/.test(name.slice(word.length).trim()));
  return isShared
    ? { name: word, labels: names.map((name) => name.slice(word.length).trim()) }
    : { name: 'step', labels: [...names] };
}

/** The zoom "12..40" (first and last row of `steps`) as URL text; null: not one, or not within the steps. */
export function parseZoom(text: string | undefined, nSteps: number): [number, number] | null {
  const parts = /^(\d+)\.\.(\d+)$/.exec(text ?? '');
  if (!parts) return null;
  const [first, last] = [Number(parts[1]), Math.min(Number(parts[2]), nSteps - 1)];
  return first < last ? [first, last] : null;
}

/** The first and last step of a zoom event, which has them in percent; undefined: all. */
export function zoomText(event: unknown, nSteps: number): string | undefined {
  const { batch, ...own } = event as {
    start?: number;
    end?: number;
    batch?: { start?: number; end?: number }[];
  };
  const { start = 0, end = 100 } = batch?.[0] ?? own;
  const [first, last] = [Math.round((start / 100) * (nSteps - 1)), Math.round((end / 100) * (nSteps - 1))];
  return first <= 0 && last >= nSteps - 1 ? undefined : `${first}..${last}`;
}
