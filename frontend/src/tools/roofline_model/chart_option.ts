/**
 * The roofline as an ECharts option: log-log axes, a line per roof, a point per operation, program and step.
 */
import type { EChartsCoreOption } from 'echarts/core';
import { paletteToken } from '../../base/color';
import { format, scaleFor, SPACE } from '../../base/units';
import { axisStyle, baseOption, tipElement, type Colors } from '../../widgets/chart';
import {
  distinctPoints,
  extentOf,
  isPlaced,
  powersOfTen,
  roofLine,
  sizeOf,
  type Point,
  type Roof,
} from './model';

export interface RooflineChart {
  points: readonly Point[];
  roofs: readonly Roof[];
  peak: number | null;
  categories: readonly string[];
  chosen: Point | undefined;
}

export const PROGRAM_TOKEN = '--text';
export const STEP_TOKEN = '--c-host';

function tokenOf(point: Point, categories: readonly string[]): string {
  if (point.kind === 'program') return PROGRAM_TOKEN;
  if (point.kind === 'step') return STEP_TOKEN;
  return paletteToken(Math.max(0, categories.indexOf(point.category)));
}

function tip(point: Point, color: string): HTMLElement {
  const title =
    point.kind === 'op'
      ? point.name
      : point.kind === 'step'
        ? `Step ${point.name}`
        : `Program: ${point.name.toLowerCase()}`;
  const line = (name: string, value: string): { color: string; name: string; value: string } => ({
    color: 'transparent',
    name,
    value,
  });
  return tipElement(title, [
    {
      color,
      name: point.category || 'Program',
      value: point.share === null ? '' : format(point.share, 'fraction'),
    },
    line('FLOP rate', format(point.flopRate, 'flops_per_s')),
    line('Intensity', format(point.intensity, 'flops_per_byte')),
    line('Limited by', point.boundBy),
    line('Share of its roof', format(point.efficiency, 'fraction')),
    line('Time', format(point.timePs, 'ps')),
  ]);
}

/** A power of ten: "100 GFLOP/s", "0.01". */
function round(value: number, unit: string): string {
  const { factor, label } = scaleFor(value, unit);
  return `${(value / factor).toLocaleString('en-US', { maximumSignificantDigits: 1 })}${label && SPACE}${label}`;
}

const ROOF_DASHES: ('solid' | 'dashed' | 'dotted')[] = ['solid', 'dashed', 'dotted'];

export function chartOption(
  { points, roofs, peak, categories, chosen }: RooflineChart,
  color: Colors,
): EChartsCoreOption {
  const base = baseOption(color);
  const extent = extentOf(points, roofs, peak);
  const placed = distinctPoints(points.filter(isPlaced), extent, chosen);
  const axis = (name: string, ends: [number, number], unit: string): object => {
    const customValues = powersOfTen(ends);
    const axisLabel = {
      color: color('--muted'),
      fontSize: 11,
      formatter: (value: number) => round(value, unit),
      hideOverlap: true,
      customValues,
    };
    return {
      ...axisStyle(color),
      type: 'log',
      name,
      nameLocation: 'middle',
      min: ends[0],
      max: ends[1],
      axisTick: { show: false, customValues },
      axisLabel,
    };
  };
  const lines = roofs.map((roof, i) => ({
    type: 'line',
    name: roof.title,
    data: roofLine(roof, peak, extent),
    symbol: 'none',
    silent: true,
    lineStyle: { color: color('--muted'), width: 1.5, type: ROOF_DASHES[i % ROOF_DASHES.length] },
    endLabel: { show: false },
    markPoint: undefined,
  }));
  return {
    ...base,
    grid: { left: 84, right: 24, top: 16, bottom: 52 },
    tooltip: {
      ...(base['tooltip'] as object),
      trigger: 'item',
      formatter: ({ data }: { data: { point?: Point; itemStyle: { color: string } } }) =>
        data.point ? tip(data.point, data.itemStyle.color) : '',
    },
    xAxis: { ...axis('Operational intensity (FLOP/byte)', extent.x, ''), nameGap: 30 },
    yAxis: { ...axis('FLOP rate', extent.y, 'flops_per_s'), nameGap: 68 },
    series: [
      ...lines,
      {
        type: 'scatter',
        data: placed.map((point) => ({
          point,
          value: [point.intensity, point.flopRate],
          symbol: point.kind === 'op' ? 'circle' : point.kind === 'step' ? 'rect' : 'diamond',
          symbolSize: point.kind === 'op' ? sizeOf(point.share) : point.kind === 'step' ? 8 : 16,
          itemStyle: {
            color: color(tokenOf(point, categories)),
            opacity: point.kind === 'op' ? 0.8 : 0.95,
            borderColor: color(chosen === point ? '--text' : '--bg'),
            borderWidth: chosen === point ? 3 : 1,
          },
        })),
      },
    ],
  };
}
