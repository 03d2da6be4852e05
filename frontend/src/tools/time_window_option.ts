/** The parts of an ECharts option that every chart of a time window shares. Pure. */
import type { EChartsCoreOption } from 'echarts/core';
import { scaleFor } from '../base/units';
import { axisStyle, baseOption, type Colors } from '../widgets/chart';
import { LEFT_PX, RIGHT_PX, type Window } from './time_window';

/** The option without its y axes and series; `tip`: the formatter of the tooltip. */
export function windowOption(window: Window, tip: unknown, color: Colors): EChartsCoreOption {
  const base = baseOption(color);
  const time = scaleFor(window.endPs, 'ps');
  const style = axisStyle(color);
  return {
    ...base,
    grid: { left: LEFT_PX, right: RIGHT_PX, top: 28, bottom: 26 },
    tooltip: {
      ...(base['tooltip'] as object),
      trigger: 'axis',
      axisPointer: { type: 'line', snap: true },
      formatter: tip,
    },
    xAxis: {
      type: 'value',
      min: window.startPs / time.factor,
      max: window.endPs / time.factor,
      ...style,
      // Next to the time labels, not next to the right axis's 0.
      name: time.label,
      nameLocation: 'end',
      nameGap: 8,
      nameTextStyle: { ...(style['nameTextStyle'] as object), verticalAlign: 'top', padding: [8, 0, 0, 0] },
      splitLine: { show: false },
      // The window's ends are no round numbers: only ticks between them have labels.
      axisLabel: {
        ...(style['axisLabel'] as object),
        showMinLabel: window.startPs === 0,
        showMaxLabel: false,
      },
    },
  };
}
