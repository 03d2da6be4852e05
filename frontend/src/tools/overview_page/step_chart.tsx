/** The time of each step as stacked bars, a colour a category; a slider zooms where there are many steps. */
import type { EChartsCoreOption } from 'echarts/core';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Table } from '../../api/types';
import { exactText, format, scaleFor } from '../../base/units';
import { axisStyle, baseOption, Chart, tipElement, type Colors } from '../../widgets/chart';
import { Legend, Section } from '../../widgets/summary';
import { parseZoom, seriesOf, stepAxis, stepNames, type Series } from './model';

const ZOOM_FROM_STEPS = 60;
const HEIGHT_PX = 220;

interface StepChartProps {
  steps: Table;
  zoom: string | undefined;
  onZoom: (zoom: string | undefined) => void;
}

interface TipParams {
  dataIndex: number;
}

function tip(names: string[], series: readonly Series[], color: Colors): (params: TipParams[]) => HTMLElement {
  return (params) => {
    const at = params[0]?.dataIndex ?? 0;
    const total = series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0);
    const lines = series.map(({ title, token, values }) => ({ color: color(token), name: title, value: format(values[at] ?? null, 'ps') }));
    return tipElement(`${/^\d/.test(names[at] ?? '') ? 'Step ' : ''}${names[at] ?? ''} · ${format(total, 'ps')} (${exactText(total, 'ps')})`, lines.reverse());
  };
}

function zoomOption(nSteps: number, zoom: [number, number] | null, color: Colors): EChartsCoreOption {
  if (nSteps < ZOOM_FROM_STEPS) return {};
  const window = zoom ? { startValue: zoom[0], endValue: zoom[1] } : {};
  const slider = { type: 'slider', height: 18, bottom: 4, showDetail: false, brushSelect: false, borderColor: color('--line'), fillerColor: color('--accent-soft'), dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } } };
  return {
    dataZoom: [
      { ...slider, ...window },
      { type: 'inside', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: false, ...window },
    ],
  };
}

function stepOption(names: string[], series: readonly Series[], zoom: [number, number] | null, color: Colors): EChartsCoreOption {
  const largest = Math.max(0, ...names.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)));
  const scale = scaleFor(largest, 'ps');
  const base = baseOption(color);
  const axis = stepAxis(names);
  return {
    ...base,
    ...zoomOption(names.length, zoom, color),
    grid: { left: 4, right: 44, top: 26, bottom: names.length < ZOOM_FROM_STEPS ? 4 : 30, containLabel: true },
    tooltip: { ...(base['tooltip'] as object), trigger: 'axis', axisPointer: { type: 'shadow' }, formatter: tip(names, series, color) },
    xAxis: { type: 'category', data: axis.labels, name: axis.name, nameLocation: 'end', nameGap: 8, ...axisStyle(color) },
    yAxis: { type: 'value', name: scale.label, nameGap: 10, ...axisStyle(color), axisLine: { show: false } },
    series: series.map(({ title, token, values }) => ({
      type: 'bar',
      stack: 'step',
      name: title,
      data: values.map((value) => (value === null ? null : value / scale.factor)),
      itemStyle: { color: color(token) },
      barMaxWidth: 56,
      barCategoryGap: names.length > 200 ? '0%' : '12%',
      large: false,
    })),
  };
}

/** The first and last step of a zoom event, which tells them in percent. */
function zoomOf(event: unknown, nSteps: number): string | undefined {
  const { batch, ...own } = event as { start?: number; end?: number; batch?: { start?: number; end?: number }[] };
  const { start = 0, end = 100 } = batch?.[0] ?? own;
  const [first, last] = [Math.round((start / 100) * (nSteps - 1)), Math.round((end / 100) * (nSteps - 1))];
  return first <= 0 && last >= nSteps - 1 ? undefined : `${first}..${last}`;
}

export function StepChart({ steps, zoom, onZoom }: StepChartProps): VNode | null {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const all = seriesOf(steps);
  if (!steps.n_rows || !all.length) return null;
  const names = stepNames(steps);
  const series = all.filter(({ name }) => !hidden.has(name));
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  const note = steps.note || `${steps.n_rows.toLocaleString('en-US')} steps`;
  return (
    <Section title={steps.title || 'Step time'} note={note} end={<Legend items={all} hidden={hidden} onToggle={toggle} />}>
      <Chart
        label="Step time"
        height={HEIGHT_PX}
        optionKey={`${[...hidden].join()}|${steps.n_rows}|${names[0]}|${series[0]?.values[0]}`}
        option={(color) => stepOption(names, series, parseZoom(zoom, names.length), color)}
        on={{ datazoom: (event) => onZoom(zoomOf(event, names.length)) }}
      />
    </Section>
  );
}
