/**
 * A chart drawn by ECharts (loaded lazily) in the theme's colors, which it follows; resizes with its box;
 * saves as an image.
 */
import type { EChartsCoreOption, EChartsType } from 'echarts/core';
import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { saveUrl } from '../base/clipboard';
import { tokenColor } from '../base/color';
import { isDark } from '../base/theme';
import './chart.css';

/** Returns the color of a token in the active theme. */
export type Colors = (token: string) => string;

export interface ChartProps {
  /** Makes the option; called again when the theme changes. */
  option: (color: Colors) => EChartsCoreOption;
  /** Changes when the option does. */
  optionKey: unknown;
  height: number;
  /** Screen-reader text; up to a colon it is also the image's file name. */
  label: string;
  on?: Record<string, (event: unknown) => void>;
  /** A click anywhere above or below a category's place on the axis. */
  onColumn?: ((column: number) => void) | undefined;
}

/** One line of a chart's tooltip. */
export interface TipLine {
  color: string;
  name: string;
  value: string;
}

/** The content of a tooltip as elements: ECharts would make HTML of a string. */
export function tipElement(title: string, lines: readonly TipLine[], hint = ''): HTMLElement {
  const box = document.createElement('div');
  box.className = 'chart-tip';
  const heading = document.createElement('b');
  heading.textContent = title;
  box.append(heading);
  for (const line of lines) {
    const dot = document.createElement('span');
    dot.className = 'dot';
    dot.style.background = line.color;
    const name = document.createElement('span');
    name.textContent = line.name;
    const value = document.createElement('i');
    value.textContent = line.value;
    box.append(dot, name, value);
  }
  if (hint) {
    const last = document.createElement('small');
    last.textContent = hint;
    box.append(last);
  }
  return box;
}

/** What all charts share: fonts, axes, tooltip, no animation. */
export function baseOption(color: Colors): EChartsCoreOption {
  return {
    animation: false,
    backgroundColor: 'transparent',
    textStyle: { fontFamily: tokenColor('--font'), color: color('--muted'), fontSize: 11 },
    aria: { enabled: true },
    tooltip: {
      confine: true,
      backgroundColor: color('--raised'),
      borderColor: color('--line-strong'),
      textStyle: { color: color('--text'), fontSize: 12 },
      padding: [6, 10],
      transitionDuration: 0,
    },
  };
}

/** An axis in the style of the page. */
export function axisStyle(color: Colors): Record<string, unknown> {
  return {
    axisLine: { lineStyle: { color: color('--line-strong') } },
    axisTick: { show: false },
    axisLabel: { color: color('--muted'), fontSize: 11, hideOverlap: true },
    nameTextStyle: { color: color('--muted'), fontSize: 11 },
    splitLine: { lineStyle: { color: color('--line') } },
  };
}

/** The column under the pointer: bars may be a pixel high. */
function followColumns(chart: EChartsType, choose: () => ((column: number) => void) | undefined): void {
  const columnAt = ({ offsetX, offsetY }: { offsetX: number; offsetY: number }): number | null => {
    if (!choose() || !chart.containPixel('grid', [offsetX, offsetY])) return null;
    const column = Number(chart.convertFromPixel({ xAxisIndex: 0 }, offsetX));
    return Number.isFinite(column) ? column : null;
  };
  const surface = chart.getZr();
  surface.on('mousemove', (event) => {
    if (columnAt(event) !== null) surface.setCursorStyle('pointer');
  });
  surface.on('click', (event) => {
    const column = columnAt(event);
    if (column !== null) choose()?.(column);
  });
}

function useChart(props: ChartProps): {
  box: { current: HTMLDivElement | null };
  chart: { current: EChartsType | null };
} {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const draw = (): void => {
    chart.current?.setOption(
      latest.current.option((token) => tokenColor(token)),
      true,
    );
  };
  useEffect(() => {
    let isGone = false;
    const resize = new ResizeObserver(() => chart.current?.resize());
    void import('./echarts').then(({ init }) => {
      if (isGone || !box.current) return;
      chart.current = init(box.current);
      for (const name of Object.keys(latest.current.on ?? {}))
        chart.current.on(name, (event: unknown) => latest.current.on?.[name]?.(event));
      followColumns(chart.current, () => latest.current.onColumn);
      draw();
      resize.observe(box.current);
    });
    return () => {
      isGone = true;
      resize.disconnect();
      chart.current?.dispose();
      chart.current = null;
    };
  }, []);
  useEffect(draw, [props.optionKey, isDark.value]);
  return { box, chart };
}

export function Chart(props: ChartProps): VNode {
  const { box, chart } = useChart(props);
  const name = props.label.split(':')[0] || 'chart';
  const save = (): void => {
    const url = chart.current?.getDataURL({
      type: 'png',
      pixelRatio: 2,
      backgroundColor: tokenColor('--bg'),
    });
    if (url) saveUrl(url, `${name.replace(/\W+/g, '_').toLowerCase()}.png`);
  };
  return (
    <div class="chart" style={{ height: `${props.height}px` }}>
      <div class="canvas" ref={box} role="img" aria-label={props.label} />
      <button
        type="button"
        class="button small chart-save"
        aria-label={`Save ${name} as an image`}
        onClick={save}
      >
        PNG
      </button>
    </div>
  );
}
