/**
 * The history of a memory as an ECharts option: stack, heap and free on top of one another, fragmentation on
 * its own axis.
 */
import type { EChartsCoreOption } from 'echarts/core';
import { format, scaleFor } from '../../base/units';
import { axisStyle, tipElement, type Colors, type TipLine } from '../../widgets/chart';
import type { Window } from '../time_window';
import { windowOption } from '../time_window_option';
import type { Point, Timeline } from './model';

export const HEIGHT_PX = 300;

export const SERIES = [
  { name: 'stack', title: 'Stack', token: '--q-6' },
  { name: 'heap', title: 'Heap', token: '--q-0' },
  { name: 'free', title: 'Free', token: '--c-idle' },
  { name: 'held', title: 'Reserved by the allocator', token: '--q-2' },
  { name: 'fragmentation', title: 'Fragmentation', token: '--q-4' },
] as const;
const [AREAS, HELD, FRAGMENTATION] = [
  SERIES.slice(0, 3) as unknown as readonly {
    name: 'stack' | 'heap' | 'free';
    title: string;
    token: string;
  }[],
  SERIES[3],
  SERIES[4],
];

/** The series of a history: no stack if it is always empty, nothing that the trace lacks. */
export function seriesOf(points: readonly Point[]): readonly (typeof SERIES)[number][] {
  return SERIES.filter(
    ({ name }) =>
      name === 'heap' || points.some((point) => (name === 'stack' ? point.stack > 0 : point[name] !== null)),
  );
}

export interface History {
  timeline: Timeline;
  points: readonly Point[];
  window: Window;
  hidden: ReadonlySet<string>;
  /** 1 if the first point is the level before the capture's first event, else 0. */
  nBefore: number;
  /** The moment that the table below shows. */
  atPs: number;
}

/** Named as in the table of what is in use. */
const BEFORE = '(allocated before the capture)';
const LONGEST = 64;

/** The end of a long name, where operations differ; the table below has the full name. */
function tailOf(text: string): string {
  return text.length > LONGEST ? `…${text.slice(1 - LONGEST)}` : text;
}

/** The event at a point: a title and a text of each known property. */
function factsOf(timeline: Timeline, row: number): [string, string][] {
  const bytes = (size: number | null): string => (size === null ? '' : format(size, 'bytes'));
  const facts: [string, string][] = [
    ['Operation', timeline.text('op')(row)],
    ['Size', bytes(timeline.number('allocation_bytes')(row))],
    ['Requested', bytes(timeline.number('requested_bytes')(row))],
    ['Step', timeline.text('step')(row)],
    ['Region', timeline.text('region')(row)],
    ['Data type', timeline.text('dtype')(row)],
    ['Shape', timeline.text('shape')(row)],
  ];
  return facts.filter(([, text]) => text !== '');
}

/** The level at a point, a line for each series. */
function levelsAt(points: readonly Point[], point: Point | undefined, color: Colors): TipLine[] {
  return seriesOf(points).map(({ name, title, token }) => ({
    color: color(token),
    name: title,
    value: format(point?.[name] ?? null, name === 'fragmentation' ? 'fraction' : 'bytes'),
  }));
}

/** The event at a point, and the level after it. */
function tip(
  { timeline, points, nBefore }: History,
  color: Colors,
): (params: { dataIndex: number }[]) => HTMLElement {
  return (params) => {
    const index = params[0]?.dataIndex ?? 0;
    const row = Math.min(index - nBefore, timeline.length - 1);
    const point = points[Math.min(index, points.length - 1)];
    if (row < 0) return tipElement(BEFORE, levelsAt(points, point, color));
    const facts: TipLine[] = factsOf(timeline, row).map(([name, text]) => ({
      color: 'transparent',
      name,
      value: tailOf(text),
    }));
    const levels = levelsAt(points, point, color);
    const when = format(timeline.number('start_ps')(row), 'ps');
    return tipElement(`${timeline.text('activity')(row)} · ${when}`, [...facts, ...levels]);
  };
}

/**
 * Areas from the top one down, each filled to the floor, so that each hides the lower part of the previous
 * one.
 */
function areas({ points, hidden }: History, factor: number, timeFactor: number, color: Colors): object[] {
  const shown = AREAS.filter(({ name }) => !hidden.has(name));
  return shown
    .map(({ title, token }, i) => ({
      type: 'line',
      name: title,
      step: 'end',
      symbol: 'none',
      lineStyle: { width: 0 },
      areaStyle: { color: color(token), opacity: 1 },
      itemStyle: { color: color(token) },
      emphasis: { disabled: true },
      data: points.map((point) => [
        point.ps / timeFactor,
        shown.slice(0, i + 1).reduce((sum, part) => sum + (point[part.name] ?? 0), 0) / factor,
      ]),
    }))
    .reverse();
}

function line({ title, token }: { title: string; token: string }, color: Colors): object {
  return {
    type: 'line',
    name: title,
    step: 'end',
    symbol: 'none',
    lineStyle: { color: color(token), width: 1.5 },
    itemStyle: { color: color(token) },
    emphasis: { disabled: true },
  };
}

function held({ points, hidden }: History, factor: number, timeFactor: number, color: Colors): object[] {
  if (hidden.has('held') || !points.some((point) => point.held !== null)) return [];
  return [
    {
      ...line(HELD, color),
      data: points.map((point) => [point.ps / timeFactor, point.held === null ? null : point.held / factor]),
    },
  ];
}

function fragmentation({ points, hidden, atPs }: History, timeFactor: number, color: Colors): object {
  const isShown = !hidden.has('fragmentation');
  return {
    ...line(FRAGMENTATION, color),
    yAxisIndex: 1,
    data: points.map((point) => [
      point.ps / timeFactor,
      isShown && point.fragmentation !== null ? point.fragmentation * 100 : null,
    ]),
    markLine: {
      silent: true,
      symbol: 'none',
      animation: false,
      label: { show: false },
      lineStyle: { color: color('--text'), type: 'dashed', width: 1 },
      data: [{ xAxis: atPs / timeFactor }],
    },
  };
}

export function historyOption(history: History, color: Colors): EChartsCoreOption {
  const { points, window, hidden } = history;
  const shown = AREAS.filter(({ name }) => !hidden.has(name));
  const largest = Math.max(
    1,
    ...points.map((point) =>
      Math.max(
        hidden.has('held') ? 0 : (point.held ?? 0),
        shown.reduce((sum, { name }) => sum + (point[name] ?? 0), 0),
      ),
    ),
  );
  const hasFragmentation = points.some((point) => point.fragmentation !== null);
  const scale = scaleFor(largest, 'bytes');
  const time = scaleFor(window.endPs, 'ps');
  const style = axisStyle(color);
  const yStyle = { ...style, axisLine: { show: false }, nameGap: 10 };
  return {
    ...windowOption(window, tip(history, color), color),
    yAxis: [
      { type: 'value', name: scale.label, min: 0, ...yStyle },
      {
        type: 'value',
        show: hasFragmentation,
        name: `${FRAGMENTATION.title}, %`,
        min: 0,
        max: 100,
        splitNumber: 2,
        ...yStyle,
        splitLine: { show: false },
      },
    ],
    series: [
      ...areas(history, scale.factor, time.factor, color),
      ...held(history, scale.factor, time.factor, color),
      fragmentation(history, time.factor, color),
    ],
  };
}
