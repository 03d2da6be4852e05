/**
 * Names become labels that fit their boxes. Widths are measured once per character and font, and truncated
 * forms of a name are kept: a frame that shows the same as the previous one allocates nothing.
 */

const ELLIPSIS = '…';

interface Measured {
  /** Width of the first k + 1 characters. */
  readonly widths: Float32Array;
  /** The name truncated to k characters, filled on first use. */
  readonly cuts: (string | undefined)[];
}

/**
 * Names kept before the cache is cleared: a long session over millions of names must not grow without bound.
 */
const MAX_NAMES = 20_000;

/** Boxes show the beginning of a name; no screen shows more of it than this. */
const MAX_CHARACTERS = 400;

export class TextFitter {
  private readonly characters = new Map<string, number>();
  private readonly names = new Map<string, Measured>();

  constructor(private readonly measure: (text: string) => number) {}

  /** The text itself if it fits, else its beginning and an ellipsis; empty if not even two letters fit. */
  fit(text: string, widthPx: number): string {
    const measured = this.measured(text);
    const { widths } = measured;
    const whole = widths.length === 0 ? 0 : (widths[widths.length - 1] as number);
    if (whole <= widthPx && text.length <= MAX_CHARACTERS) return text;
    const room = widthPx - this.width(ELLIPSIS);
    const count = charactersWithin(widths, room);
    if (count < 2) return '';
    const cachedCut = measured.cuts[count];
    if (cachedCut !== undefined) return cachedCut;
    const cut = text.slice(0, count) + ELLIPSIS;
    measured.cuts[count] = cut;
    return cut;
  }

  width(text: string): number {
    let total = 0;
    for (let i = 0; i < text.length; i++) total += this.characterWidth(text.charAt(i));
    return total;
  }

  private measured(text: string): Measured {
    const cached = this.names.get(text);
    if (cached) return cached;
    if (this.names.size >= MAX_NAMES) this.names.clear();
    const widths = new Float32Array(Math.min(text.length, MAX_CHARACTERS));
    let total = 0;
    for (let i = 0; i < widths.length; i++) {
      total += this.characterWidth(text.charAt(i));
      widths[i] = total;
    }
    const fresh: Measured = { widths, cuts: [] };
    this.names.set(text, fresh);
    return fresh;
  }

  private characterWidth(character: string): number {
    const cachedWidth = this.characters.get(character);
    if (cachedWidth !== undefined) return cachedWidth;
    const width = this.measure(character);
    this.characters.set(character, width);
    return width;
  }
}

/** How many characters fit, by the running widths (binary search). */
export function charactersWithin(widths: Float32Array, roomPx: number): number {
  let lo = 0;
  let hi = widths.length;
  while (lo < hi) {
    const middle = (lo + hi) >>> 1;
    if ((widths[middle] as number) <= roomPx) lo = middle + 1;
    else hi = middle;
  }
  return lo;
}
