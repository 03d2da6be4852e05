/** Lines over wall-clock time, each with its band; gaps where values are unknown. */
import type { EChartsCoreOption } from 'echarts/core';
import type { VNode } from 'preact';
import { exactText, format, formatRange, scaleFor } from '../base/units';
import { axisStyle, baseOption, Chart, tipElement, type Colors, type TipLine } from './chart';

type Point = [number, number | null];

export interface TimeSeries {
  name: string;
  token: string;
  /** Time in ms since 1970 and value; null: unknown. */
  points: Point[];
  low?: Point[];
  high?: Point[];
}

export interface TimeChartProps {
  title: string;
  unit: string;
  series: readonly TimeSeries[];
  height?: number;
}

const LEFT_PX = 52;
const DOTS_UP_TO = 60;

function clock(ms: number): string {
  return new Date(ms).toLocaleTimeString('en-GB');
}

/** The samples at the time of the pointer: of each series the last that is not after it. */
export function linesAt(
  series: readonly TimeSeries[],
  unit: string,
  timeMs: number,
  color: Colors,
): TipLine[] {
  return series.flatMap(({ name, token, points, low, high }) => {
    let index = points.length - 1;
    while (index > 0 && (points[index]?.[0] ?? 0) > timeMs) index -= 1;
    if (index < 0) return [];
    const value = points[index]?.[1] ?? null;
    const [least, most] = [low?.[index]?.[1] ?? null, high?.[index]?.[1] ?? null];
    const span =
      least !== null && most !== null && least !== most ? ` (${formatRange(least, most, unit)})` : '';
    return [{ color: color(token), name, value: value === null ? 'unknown' : format(value, unit) + span }];
  });
}

function scaled(points: readonly Point[], factor: number): Point[] {
  return points.map(([time, value]) => [time, value === null ? null : value / factor]);
}

/** A transparent line at the band's low end, and on it an area as high as the band is wide. */
function bandSeries({ name, token, low, high }: TimeSeries, factor: number, color: Colors): object[] {
  if (!low || !high) return [];
  const widths = high.map(([time, end], i): Point => {
    const start = low[i]?.[1] ?? null;
    return [time, end === null || start === null ? null : end - start];
  });
  const line = {
    type: 'line',
    stack: `band ${name}`,
    symbol: 'none',
    lineStyle: { opacity: 0 },
    silent: true,
    name: `${name}, span`,
  };
  return [
    { ...line, data: scaled(low, factor) },
    { ...line, data: scaled(widths, factor), areaStyle: { color: color(token), opacity: 0.22 } },
  ];
}

function largestOf(series: readonly TimeSeries[]): number {
  let largest = 0;
  for (const { points, high } of series)
    for (const [, value] of [...points, ...(high ?? [])]) largest = Math.max(largest, value ?? 0);
  return largest;
}

function timeOption({ unit, series }: TimeChartProps, color: Colors): EChartsCoreOption {
  const isShare = unit === 'fraction';
  const scale = scaleFor(isShare ? 1 : largestOf(series), unit);
  const base = baseOption(color);
  const style = axisStyle(color);
  const line = ({ name, token, points }: TimeSeries): object => ({
    type: 'line',
    name,
    data: scaled(points, scale.factor),
    symbol: points.length > DOTS_UP_TO ? 'none' : 'circle',
    symbolSize: 5,
    lineStyle: { color: color(token), width: 2 },
    itemStyle: { color: color(token) },
  });
  const formatter = (params: { axisValue?: number }[]): HTMLElement => {
    const time = Number(params[0]?.axisValue ?? 0);
    return tipElement(clock(time), linesAt(series, unit, time, color));
  };
  return {
    ...base,
    grid: { left: LEFT_PX, right: 16, top: 26, bottom: 24 },
    tooltip: { ...(base['tooltip'] as object), trigger: 'axis', formatter },
    xAxis: {
      type: 'time',
      ...style,
      splitLine: { show: false },
      axisLabel: { ...(style['axisLabel'] as object), formatter: clock },
    },
    yAxis: {
      type: 'value',
      name: scale.label,
      nameGap: 10,
      min: 0,
      ...(isShare ? { max: 100, interval: 25 } : {}),
      ...style,
      axisLine: { show: false },
      nameTextStyle: {
        color: color('--muted'),
        fontSize: 11,
        align: 'left',
        padding: [0, 0, 0, 8 - LEFT_PX],
      },
    },
    series: [...series.flatMap((one) => bandSeries(one, scale.factor, color)), ...series.map(line)],
  };
}

export function TimeChart(props: TimeChartProps): VNode {
  const { title, unit, series, height = 220 } = props;
  const newest = series.map(({ name, points }) => `${name} ${exactText(points.at(-1)?.[1] ?? null, unit)}`);
  const key = series.map(({ name, points }) => `${name} ${points.length} ${points.at(-1)?.[0]}`).join('|');
  return (
    <Chart
      label={`${title}: newest ${newest.join(', ')}`}
      height={height}
      optionKey={key}
      option={(color) => timeOption(props, color)}
    />
  );
}
