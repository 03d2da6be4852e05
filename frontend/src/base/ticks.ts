/** Round values for the axis of a chart. Pure. */

/** The multiples of 1, 2 or 5 times a power of ten from `low` to `high`: as many as `most` allows. */
export function ticksOf(low: number, high: number, most: number): number[] {
  const span = high - low;
  if (!(span > 0) || most < 1) return [];
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => span / one <= most) ?? span;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}
