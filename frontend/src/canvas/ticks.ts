/**
 * A window of time becomes the ticks of its ruler: round steps (1, 2, 5 × 10^k), at least `minGapPx` apart.
 *
 * From two minutes on, times are hours, minutes and seconds ("1 h 23 min"), in steps of these.
 *
 * Deep in a long trace an absolute label would need a dozen digits ("204.118203450 ms"); then the ruler
 * states the base once and labels the ticks relative to it ("+450 ps").
 */

import { pxPerPs, spanPs, type Viewport } from './viewport';

export interface Ruler {
  readonly stepPs: number;
  /** Time of the first tick at or after the window's start; tick i is at firstPs + i * stepPs. */
  readonly firstPs: number;
  readonly nTicks: number;
  /** What the labels are relative to; 0 where they are absolute. */
  readonly basePs: number;
  readonly baseLabel: string;
}

const UNITS: readonly (readonly [string, number])[] = [
  ['ps', 1],
  ['ns', 1e3],
  ['µs', 1e6],
  ['ms', 1e9],
  ['s', 1e12],
];

const MAX_DECIMALS = 3;

const S = 1e12;
/** From here on in hours, minutes and seconds. */
const CLOCK_FROM_PS = 120 * S;
const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const DAY_S = 86_400;
/** "26 h 30 min 15 s" needs more room than "204 ms". */
const CLOCK_GAP_PX = 150;

/** The smallest whole part of a day, hour, minute or second that is at least `leastPs`. */
function clockStep(leastPs: number): number {
  const step = CLOCK_STEPS.find((seconds) => seconds * S >= leastPs);
  return (step ?? niceStep(leastPs / S / DAY_S) * DAY_S) * S;
}

/** "3 h 20 min 5.1 s", without parts that are 0. */
function clockText(timePs: number, decimals: number): string {
  const seconds = Number((timePs / S).toFixed(decimals));
  const parts: [number, string][] = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  return parts
    .map(([n, unit]) => [unit === 's' ? n.toFixed(decimals) : String(n), unit] as const)
    .filter(([n]) => Number(n) > 0)
    .map((part) => part.join(' '))
    .join(' ');
}

/** The smallest of 1, 2, 5 × 10^k that is at least `least`. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const lead = Math.max(least, 1) / power;
  const step = lead <= 1 + 1e-9 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10;
  return step * power;
}

function unitFor(magnitudePs: number): readonly [string, number] {
  let best = UNITS[0] as readonly [string, number];
  for (const unit of UNITS) if (magnitudePs >= unit[1]) best = unit;
  return best;
}

function decimalsFor(stepPs: number, unitPs: number): number {
  return Math.max(0, Math.ceil(Math.log10(unitPs / stepPs) - 1e-9));
}

/** A time in the unit that fits its size, with enough decimals to distinguish one step from the next. */
export function timeLabel(timePs: number, stepPs: number): string {
  if (timePs === 0) return '0';
  if (timePs >= CLOCK_FROM_PS) return clockText(timePs, decimalsFor(Math.min(stepPs, S), S));
  const [unit, unitPs] = unitFor(Math.abs(timePs));
  return `${(timePs / unitPs).toFixed(decimalsFor(stepPs, unitPs))} ${unit}`;
}

export function rulerOf(view: Viewport, widthPx: number, minGapPx = 110): Ruler {
  const isLong = view.endPs >= CLOCK_FROM_PS;
  const leastPs = (isLong ? Math.max(minGapPx, CLOCK_GAP_PX) : minGapPx) / pxPerPs(view, widthPx);
  const stepPs = isLong && leastPs > S / 2 ? clockStep(leastPs) : niceStep(leastPs);
  const firstPs = Math.ceil(view.startPs / stepPs) * stepPs;
  const nTicks = Math.max(0, Math.floor((view.endPs - firstPs) / stepPs) + 1);
  const [, unitPs] = unitFor(Math.max(view.endPs, 1));
  if (isLong ? stepPs >= S : decimalsFor(stepPs, unitPs) <= MAX_DECIMALS)
    return { stepPs, firstPs, nTicks, basePs: 0, baseLabel: '' };
  const baseStep = isLong && spanPs(view) > S / 2 ? clockStep(spanPs(view)) : niceStep(spanPs(view));
  const basePs = Math.floor(view.startPs / baseStep) * baseStep;
  return { stepPs, firstPs, nTicks, basePs, baseLabel: basePs > 0 ? timeLabel(basePs, baseStep) : '' };
}

export function tickLabel(ruler: Ruler, index: number): string {
  const timePs = ruler.firstPs + index * ruler.stepPs;
  if (ruler.basePs === 0) return roundLabel(timePs, ruler.stepPs);
  return `+${roundLabel(timePs - ruler.basePs, ruler.stepPs)}`;
}

/** "1 s", not "1.0 s", next to "800 ms"; but "1.80 s" next to "1.85 s". */
function roundLabel(timePs: number, stepPs: number): string {
  const [, unitPs] = unitFor(Math.abs(timePs));
  return timeLabel(timePs, timePs % unitPs === 0 ? unitPs : stepPs);
}
