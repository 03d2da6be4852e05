/** The allocator's history as an ECharts option: memory in use as areas, memory held as a line above them. */
import type { EChartsCoreOption } from 'echarts/core';
import { format, scaleFor } from '../../base/units';
import { axisStyle, tipElement, type Colors, type TipLine } from '../../widgets/chart';
import type { Window } from '../time_window';
import { windowOption } from '../time_window_option';
import { failuresOf, type Point, type Timeline } from './model';

export const HEIGHT_PX = 300;
const SERIES = [
  { name: 'used', title: 'In use', token: '--q-0' },
  { name: 'pending', title: 'Waiting for a stream', token: '--q-4' },
  { name: 'held', title: 'Held by the allocator', token: '--q-2' },
] as const;
type Series = (typeof SERIES)[number];

/** No series that is always 0. */
export function seriesOf(points: readonly Point[]): readonly Series[] {
  return SERIES.filter(({ name }) => name === 'used' || points.some((point) => point[name] > 0));
}

export interface History {
  timeline: Timeline;
  points: readonly Point[];
  window: Window;
  hidden: ReadonlySet<string>;
  /** The moment that the tables show. */
  atPs: number;
}

function tip({ timeline, points }: History, color: Colors): (params: { dataIndex: number }[]) => HTMLElement {
  return (params) => {
    const point = points[Math.min(params[0]?.dataIndex ?? 0, points.length - 1)];
    if (!point) return tipElement('', []);
    const facts: TipLine[] = [
      {
        color: 'transparent',
        name: 'Size',
        value: format(timeline.number('size_bytes')(point.row), 'bytes'),
      },
      { color: 'transparent', name: 'At', value: timeline.text('place')(point.row) },
    ];
    const levels = seriesOf(points).map(({ name, title, token }) => ({
      color: color(token),
      name: title,
      value: format(point[name], 'bytes'),
    }));
    const action = timeline.text('action')(point.row);
    const title = `${action.charAt(0).toUpperCase()}${action.slice(1)}`;
    const when = format(timeline.number('start_ps')(point.row), 'ps');
    return tipElement(`${title} · ${when}`, [...facts, ...levels]);
  };
}

/** The moment of the tables and the failed allocations as lines; they belong to a series. */
function marks({ atPs, timeline }: History, timeFactor: number, color: Colors): object {
  return {
    markLine: {
      silent: true,
      symbol: 'none',
      animation: false,
      label: { show: false },
      lineStyle: { width: 1 },
      data: [
        { xAxis: atPs / timeFactor, lineStyle: { color: color('--text'), type: 'dashed' } },
        ...failuresOf(timeline).map((ps) => ({
          xAxis: ps / timeFactor,
          lineStyle: { color: color('--bad'), type: 'solid' },
        })),
      ],
    },
  };
}

/** A line without fill, or, stacked on others, an area without line. */
function drawn(
  { title, token, name }: Series,
  { points }: History,
  [factor, timeFactor]: [number, number],
  color: Colors,
): object {
  const isArea = name !== 'held';
  return {
    type: 'line',
    name: title,
    step: 'end',
    symbol: 'none',
    itemStyle: { color: color(token) },
    emphasis: { disabled: true },
    ...(isArea
      ? { stack: 'in use', lineStyle: { width: 0 }, areaStyle: { color: color(token), opacity: 1 } }
      : { lineStyle: { color: color(token), width: 1.5 } }),
    data: points.map((point) => [point.ps / timeFactor, point[name] / factor]),
  };
}

export function historyOption(history: History, color: Colors): EChartsCoreOption {
  const { points, window, hidden } = history;
  const shown = seriesOf(points).filter(({ name }) => !hidden.has(name));
  const heightOf = (point: Point): number => {
    const areas = shown.filter(({ name }) => name !== 'held').reduce((sum, { name }) => sum + point[name], 0);
    return Math.max(areas, hidden.has('held') ? 0 : point.held);
  };
  const scale = scaleFor(Math.max(1, ...points.map(heightOf)), 'bytes');
  const time = scaleFor(window.endPs, 'ps');
  const style = axisStyle(color);
  return {
    ...windowOption(window, tip(history, color), color),
    yAxis: { type: 'value', name: scale.label, min: 0, ...style, axisLine: { show: false }, nameGap: 10 },
    series: shown.map((one, i) => ({
      ...drawn(one, history, [scale.factor, time.factor], color),
      ...(i === 0 ? marks(history, time.factor, color) : {}),
    })),
  };
}
