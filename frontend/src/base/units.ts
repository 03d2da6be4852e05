/**
 * Formats numbers with a unit as text: three significant digits, scaled and labeled; the exact value for
 * tooltips.
 */

export const UNKNOWN = '—';
export const SPACE = '\u00a0';

export interface Scale {
  /** Divide by this. */
  factor: number;
  label: string;
}

/** A number as a tile shows it: "12.4" and "ms". */
export interface Quantity {
  number: string;
  unit: string;
}

const PS_SCALES: Scale[] = [
  { factor: 1, label: 'ps' },
  { factor: 1e3, label: 'ns' },
  { factor: 1e6, label: 'µs' },
  { factor: 1e9, label: 'ms' },
  { factor: 1e12, label: 's' },
  { factor: 120e12, label: 'min' },
  { factor: 7200e12, label: 'h' },
];
/**
 * The label changes later than its factor suggests: two minutes are shown as 120 s until 2 min is easier to
 * read.
 */
const LONG_SCALES: Record<string, number> = { min: 60e12, h: 3600e12 };

function decimalScales(suffix: string): Scale[] {
  return ['', 'k', 'M', 'G', 'T', 'P', 'E'].map((prefix, power) => ({
    factor: 1000 ** power,
    label: prefix + suffix,
  }));
}

function binaryScales(suffix: string): Scale[] {
  return ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'].map((label, power) => ({
    factor: 1024 ** power,
    label: label + suffix,
  }));
}

const SCALES: Record<string, Scale[]> = {
  ps: PS_SCALES,
  bytes: binaryScales(''),
  bytes_per_s: decimalScales('B/s'),
  flops_per_s: decimalScales('FLOP/s'),
  flops_per_byte: [{ factor: 1, label: 'FLOP/B' }],
  fraction: [{ factor: 0.01, label: '%' }],
  count: [
    { factor: 1, label: '' },
    { factor: 1e6, label: 'M' },
    { factor: 1e9, label: 'G' },
  ],
};
const PLAIN: Scale[] = [{ factor: 1, label: '' }];

/** The scale in which a value of that unit is easiest to read. An axis passes its largest value. */
export function scaleFor(value: number, unit: string): Scale {
  const scales = SCALES[unit] ?? PLAIN;
  const size = Math.abs(value);
  let best = scales[0] as Scale;
  for (const scale of scales) if (size >= scale.factor * 0.9995) best = scale;
  return { factor: LONG_SCALES[best.label] ?? best.factor, label: best.label };
}

const GROUPED = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** Three significant digits; integers from 1,000 on are kept whole and grouped. */
export function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 999.5) return GROUPED.format(value);
  if (size < 1e-4 || size >= 1e15) return value.toExponential(2);
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(size)));
  const text = value.toFixed(decimals);
  // 9.996 rounds to 10.00: one digit too many.
  return text.replace(/\D/g, '').replace(/^0+/, '').length > 3 && decimals > 0
    ? value.toFixed(decimals - 1)
    : text;
}

function isWhole(value: number, unit: string, label: string): boolean {
  return (
    Number.isInteger(value) &&
    (unit === 'count' || unit === 'id' || unit === '' || label === 'ps' || label === 'B')
  );
}

/** The value as number and unit; unknown (null, NaN, infinite) is an em dash. */
export function quantity(value: number | null | undefined, unit: string): Quantity {
  if (value === null || value === undefined || !Number.isFinite(value)) return { number: UNKNOWN, unit: '' };
  if (unit === 'id') return { number: String(value), unit: '' };
  if (unit === 'ps' && value === 0) return { number: '0', unit: 's' };
  const scale = scaleFor(value, unit);
  const scaled = value / scale.factor;
  if (unit === 'fraction' && scaled !== 0 && Math.abs(scaled) < 0.01)
    return { number: scaled < 0 ? '> −0.01' : '< 0.01', unit: '%' };
  const number = isWhole(scaled, unit, scale.label) ? GROUPED.format(scaled) : threeDigits(scaled);
  return { number, unit: scale.label };
}

/** The value as text: "12.4 ms", with a space that does not break. */
export function format(value: number | null | undefined, unit: string): string {
  const { number, unit: label } = quantity(value, unit);
  return number + spaced(label);
}

/** The value as text in the unit in which `model` is easiest to read, so that a sum matches its parts. */
export function formatIn(value: number, model: number, unit: string): string {
  const scale = scaleFor(model, unit);
  if (!model || unit === 'fraction' || unit === 'count' || scaleFor(value, unit).label === scale.label)
    return format(value, unit);
  return threeDigits(value / scale.factor) + spaced(scale.label);
}

/** A unit as it follows a number: after a space, except for "%". */
export function spaced(label: string): string {
  return label && label !== '%' ? SPACE + label : label;
}

/** An interval in one scale: "5.10–5.40 ms"; ends that format alike are one number. */
export function formatRange(
  low: number | null | undefined,
  high: number | null | undefined,
  unit: string,
): string {
  if (
    low === null ||
    low === undefined ||
    high === null ||
    high === undefined ||
    !Number.isFinite(low + high)
  )
    return UNKNOWN;
  const scale = scaleFor(high, unit);
  const ends = [low, high].map((end) => threeDigits(end / scale.factor));
  return ends[0] === ends[1] ? format(high, unit) : ends.join('–') + spaced(scale.label);
}

const EXACT = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 17 });
const EXACT_LABELS: Record<string, string> = {
  ps: 'ps',
  bytes: 'bytes',
  bytes_per_s: 'bytes/s',
  flops_per_s: 'FLOP/s',
  flops_per_byte: 'FLOP/byte',
};

/** All digits of the value in its own unit, for tooltips. */
export function exactText(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return 'unknown';
  if (unit === 'id') return String(value);
  if (unit === 'fraction') return `${EXACT.format(Number((value * 100).toPrecision(12)))}%`;
  const label = EXACT_LABELS[unit];
  return EXACT.format(value) + (label ? ` ${label}` : '');
}

const BEFORE_UNIT =
  /(?<=\d) (?=(?:[pnµm]?s|min|h|[KMGTP]?i?B|[kKMGTPE]?(?:B|FLOP)\/s|FLOP\/B)(?![\w/-]))|(?<=[<>±]) (?=[−\d])/g;

/** A text from the server, with non-breaking spaces between its numbers and units. */
export function unbroken(text: string): string {
  return text.replace(BEFORE_UNIT, SPACE);
}

/** "1 host", "3 hosts". */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${GROUPED.format(n)} ${n === 1 ? one : many}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/**
 * "20 Nov 2026 22:13": the time as written in the name, without conversion to another time zone. Not a time:
 * an em dash.
 */
export function dateText(iso: string | null): string {
  const parts = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)/.exec(iso ?? '');
  if (!parts) return UNKNOWN;
  return `${Number(parts[3])} ${MONTHS[Number(parts[2]) - 1] ?? '?'} ${parts[1]} ${parts[4]}:${parts[5]}`;
}
