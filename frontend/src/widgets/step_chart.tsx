/**
 * The time of each step as stacked bars, one color per category; below it, if requested, a share of each step
 * as a line, with its band. One axis of steps for both; a slider zooms if there are many steps.
 */
import type { EChartsCoreOption } from 'echarts/core';
import type { ComponentChildren, VNode } from 'preact';
import { useState } from 'preact/hooks';
import { exactText, format, plural, scaleFor, UNKNOWN } from '../base/units';
import { axisStyle, baseOption, Chart, tipElement, type Colors } from './chart';
import { parseZoom, stepAxis, zoomText } from './step_axis';
import { Legend, Section, StackBar } from './summary';

const ZOOM_FROM_STEPS = 60;
const BARS_PX = 220;
const SHARE_PX = 120;
const LEFT_PX = 52;
const RIGHT_PX = 52;
/** Opacity of the steps other than the chosen one. */
const FAINT = 0.38;

export interface StepSeries {
  name: string;
  title: string;
  token: string;
  values: (number | null)[];
}

/** A share of each step (0–1), and if known its minimum and maximum over cores or hosts. */
export interface StepShare {
  title: string;
  token: string;
  values: (number | null)[];
  band?: { title: string; low: (number | null)[]; high: (number | null)[] };
  /** For each step the core or host with the largest share. */
  who?: { title: string; names: (string | null)[] };
}

export interface StepChartProps {
  title: string;
  /** The heading's sentence; absent: that of the table with this title. */
  tip?: string;
  note: string;
  names: string[];
  /** The title of the axis; absent: steps. */
  axisName?: string;
  series: readonly StepSeries[];
  share?: StepShare;
  zoom: string | undefined;
  onZoom: (zoom: string | undefined) => void;
  /** A click chooses a step; `hint` in the tooltip explains the effect. */
  choice?: { row: number; choose: (row: number) => void; hint: string } | undefined;
  /** Controls before the legend. */
  tools?: ComponentChildren;
}

interface Drawn extends Pick<StepChartProps, 'names' | 'share' | 'axisName' | 'choice'> {
  series: readonly StepSeries[];
  zoom: [number, number] | null;
}

interface TipParams {
  dataIndex: number;
}

function tip(
  { names, series, share, choice, axisName }: Drawn,
  color: Colors,
): (params: TipParams[]) => HTMLElement {
  return (params) => {
    const index = params[0]?.dataIndex ?? 0;
    const total = series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
    const lines = series
      .map(({ title, token, values }) => ({
        color: color(token),
        name: title,
        value: format(values[index] ?? null, 'ps'),
      }))
      .reverse();
    if (share)
      lines.push({
        color: 'transparent',
        name: share.title,
        value: format(share.values[index] ?? null, 'fraction'),
      });
    if (share?.band) {
      const ends = [share.band.low[index], share.band.high[index]].map((end) =>
        format(end ?? null, 'fraction'),
      );
      lines.push({ color: 'transparent', name: share.band.title, value: ends.join(' to ') });
    }
    if (share?.who)
      lines.push({ color: 'transparent', name: share.who.title, value: share.who.names[index] ?? UNKNOWN });
    const name = names[index] ?? '';
    const title = axisName === undefined && /^\d/.test(name) ? `Step ${name}` : name;
    return tipElement(
      `${title} · ${format(total, 'ps')} (${exactText(total, 'ps')})`,
      lines,
      choice && choice.row !== index ? choice.hint : '',
    );
  };
}

function zoomOption({ names, zoom, share }: Drawn, color: Colors): EChartsCoreOption {
  if (names.length < ZOOM_FROM_STEPS) return {};
  const window = {
    xAxisIndex: share ? [0, 1] : [0],
    ...(zoom ? { startValue: zoom[0], endValue: zoom[1] } : {}),
  };
  const slider = {
    type: 'slider',
    height: 18,
    bottom: 4,
    left: LEFT_PX,
    right: RIGHT_PX,
    showDetail: false,
    brushSelect: false,
    borderColor: color('--line'),
    fillerColor: color('--accent-soft'),
    dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
  };
  return {
    dataZoom: [
      { ...slider, ...window },
      { type: 'inside', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: false, ...window },
    ],
  };
}

function barSeries({ names, series, choice }: Drawn, factor: number, color: Colors): object[] {
  const isFaint = (index: number): boolean => choice !== undefined && choice.row >= 0 && choice.row !== index;
  const item = (value: number | null, index: number): unknown =>
    value === null
      ? null
      : isFaint(index)
        ? { value: value / factor, itemStyle: { opacity: FAINT } }
        : value / factor;
  return series.map(({ title, token, values }) => ({
    type: 'bar',
    stack: 'step',
    name: title,
    data: values.map(item),
    itemStyle: { color: color(token) },
    barMaxWidth: 56,
    barCategoryGap: names.length > 200 ? '0%' : '12%',
    large: false,
  }));
}

/** The band is a transparent line at its low end, and on top of it an area as high as the band is wide. */
function bandSeries(
  { title, low, high }: NonNullable<StepShare['band']>,
  token: string,
  color: Colors,
): object[] {
  const widths = high.map((end, i) =>
    end === null || low[i] === null || low[i] === undefined ? null : (end - low[i]) * 100,
  );
  const line = {
    type: 'line',
    stack: 'band',
    xAxisIndex: 1,
    yAxisIndex: 1,
    symbol: 'none',
    lineStyle: { opacity: 0 },
    silent: true,
  };
  return [
    { ...line, name: `${title}, least`, data: low.map((end) => (end === null ? null : end * 100)) },
    { ...line, name: title, data: widths, areaStyle: { color: color(token), opacity: 0.28 } },
  ];
}

function shareSeries({ names, share }: Drawn, color: Colors): object[] {
  if (!share) return [];
  const line = {
    type: 'line',
    name: share.title,
    xAxisIndex: 1,
    yAxisIndex: 1,
    data: share.values.map((value) => (value === null ? null : value * 100)),
    symbol: names.length > 40 ? 'none' : 'circle',
    symbolSize: 5,
    lineStyle: { color: color(share.token), width: 2 },
    itemStyle: { color: color(share.token) },
  };
  return [...(share.band ? bandSeries(share.band, share.token, color) : []), line];
}

function stepOption(drawn: Drawn, color: Colors): EChartsCoreOption {
  const { names, series, share } = drawn;
  const largest = Math.max(
    0,
    ...names.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)),
  );
  const scale = scaleFor(largest, 'ps');
  const base = baseOption(color);
  const axis = drawn.axisName === undefined ? stepAxis(names) : { name: drawn.axisName, labels: names };
  const sides = { left: LEFT_PX, right: RIGHT_PX };
  const xAxis = { type: 'category', data: axis.labels, nameLocation: 'end', nameGap: 8, ...axisStyle(color) };
  const yAxis = {
    type: 'value',
    nameGap: 10,
    nameTextStyle: { color: color('--muted'), fontSize: 11, align: 'left', padding: [0, 0, 0, 8 - LEFT_PX] },
  };
  const style = { ...axisStyle(color), axisLine: { show: false }, nameTextStyle: yAxis.nameTextStyle };
  const grids = [
    { ...sides, top: 26, height: BARS_PX - 50 },
    { ...sides, top: BARS_PX + 22, height: SHARE_PX - 46 },
  ];
  const xAxes = [
    { ...xAxis, gridIndex: 0, name: axis.name },
    { ...xAxis, gridIndex: 1, name: axis.name },
  ];
  const yAxes = [
    { ...yAxis, ...style, gridIndex: 0, name: scale.label },
    { ...yAxis, ...style, gridIndex: 1, name: `${share?.title ?? ''}, %`, min: 0, max: 100, splitNumber: 2 },
  ];
  const n = share ? 2 : 1;
  return {
    ...base,
    ...zoomOption(drawn, color),
    grid: grids.slice(0, n),
    axisPointer: { link: [{ xAxisIndex: 'all' }] },
    tooltip: {
      ...(base['tooltip'] as object),
      trigger: 'axis',
      axisPointer: { type: 'shadow' },
      formatter: tip(drawn, color),
    },
    xAxis: xAxes.slice(0, n),
    yAxis: yAxes.slice(0, n),
    series: [...barSeries(drawn, scale.factor, color), ...shareSeries(drawn, color)],
  };
}

function heightOf(nSteps: number, hasShare: boolean): number {
  return BARS_PX + (hasShare ? SHARE_PX : 0) + (nSteps < ZOOM_FROM_STEPS ? 0 : 26);
}

/** The mean of the known values, null if there are none. */
function meanOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

/** Text alternative of the chart. */
function labelOf(title: string, { names, series, share, axisName }: Drawn): string {
  const parts = series.map(({ title, values }) => `${title} ${format(meanOf(values), 'ps')}`);
  const below = share ? `; below it, ${share.title.toLowerCase()} of each step` : '';
  const bars = axisName
    ? `${plural(names.length, 'bar')}, one per ${axisName}`
    : plural(names.length, 'step');
  return `${title}: ${bars}; on average ${parts.join(', ')}${below}`;
}

/** A single step is one bar: lying, with its parts and their shares named below it. */
function OneStep({ series }: { series: readonly StepSeries[] }): VNode {
  const totalPs = series.reduce((sum, { values }) => sum + (values[0] ?? 0), 0);
  const parts = series.map(({ title, token, values }) => {
    const fraction = totalPs ? (values[0] ?? 0) / totalPs : 0;
    const text = `${format(values[0] ?? null, 'ps')} · ${format(fraction, 'fraction')}`;
    return { title, token, fraction, text, tip: `${title}: ${text}` };
  });
  return (
    <div class="one-step">
      <StackBar parts={parts} label={parts.map(({ tip: text }) => text).join(', ')} />
      <ul class="legend" aria-label="Parts">
        {parts
          .filter(({ fraction }) => fraction > 0)
          .map(({ title, token, text }) => (
            <li key={title}>
              <span class="dot" style={{ background: `var(${token})` }} /> {title}{' '}
              <span class="muted">{text}</span>
            </li>
          ))}
      </ul>
    </div>
  );
}

export function StepChart({
  title,
  tip: headingTip,
  note,
  names,
  axisName,
  series: all,
  share,
  zoom,
  onZoom,
  choice,
  tools,
}: StepChartProps): VNode | null {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  if (!names.length || !all.length) return null;
  const series = all.filter(({ name }) => !hidden.has(name));
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  const drawn: Drawn = {
    names,
    series,
    zoom: parseZoom(zoom, names.length),
    ...(share ? { share } : {}),
    ...(axisName === undefined ? {} : { axisName }),
    choice,
  };
  if (names.length === 1 && !share)
    return (
      <Section title={title} note={note} end={tools}>
        <OneStep series={all} />
      </Section>
    );
  const first = series[0]?.values;
  const end = (
    <>
      {tools}
      <Legend items={all} hidden={hidden} onToggle={toggle} />
    </>
  );
  return (
    <Section title={title} tip={headingTip} note={note} end={end}>
      <Chart
        label={labelOf(title, drawn)}
        height={heightOf(names.length, Boolean(share))}
        optionKey={`${[...hidden].join()}|${names.length}|${names[0]}|${first?.[0]}|${first?.at(-1)}|${share?.values[0]}|${choice?.row}`}
        option={(color) => stepOption(drawn, color)}
        onColumn={choice?.choose}
        on={{ datazoom: (event) => onZoom(zoomText(event, names.length)) }}
      />
    </Section>
  );
}
