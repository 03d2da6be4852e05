/** The minimum in use during each step: a rising floor indicates a leak. */
import type { EChartsCoreOption } from 'echarts/core';
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { RowsOf } from '../../api/declared';
import { exactText, format, scaleFor } from '../../base/units';
import { axisStyle, baseOption, Chart, tipElement, type Colors } from '../../widgets/chart';
import { stepAxis } from '../../widgets/step_axis';
import { Section } from '../../widgets/summary';
import type { TABLES } from './model';

const HEIGHT_PX = 150;

interface FloorStep {
  step: string;
  floor: number;
  isWarmUp: boolean;
}

function floorOption(steps: readonly FloorStep[], color: Colors): EChartsCoreOption {
  const scale = scaleFor(Math.max(1, ...steps.map(({ floor }) => floor)), 'bytes');
  const base = baseOption(color);
  const axis = stepAxis(steps.map(({ step }) => step));
  const tip = (params: { dataIndex: number }[]): HTMLElement => {
    const step = steps[params[0]?.dataIndex ?? 0] as FloorStep;
    return tipElement(step.step, [
      {
        color: color('--q-0'),
        name: step.isWarmUp ? 'Floor (warm-up)' : 'Floor',
        value: `${format(step.floor, 'bytes')} (${exactText(step.floor, 'bytes')})`,
      },
    ]);
  };
  return {
    ...base,
    grid: { left: 64, right: 52, top: 26, bottom: 24 },
    tooltip: {
      ...(base['tooltip'] as object),
      trigger: 'axis',
      axisPointer: { type: 'shadow' },
      formatter: tip,
    },
    xAxis: {
      type: 'category',
      data: axis.labels,
      name: axis.name,
      nameLocation: 'end',
      nameGap: 8,
      ...axisStyle(color),
    },
    yAxis: { type: 'value', name: scale.label, nameGap: 10, ...axisStyle(color), axisLine: { show: false } },
    series: [
      {
        type: 'bar',
        barMaxWidth: 40,
        data: steps.map(({ floor, isWarmUp }) => ({
          value: floor / scale.factor,
          itemStyle: { color: color(isWarmUp ? '--c-idle' : '--q-0') },
        })),
      },
    ],
  };
}

export function FloorSection({
  rows,
  riseBytes,
}: {
  rows: RowsOf<typeof TABLES.floor>;
  riseBytes: number;
}): VNode | null {
  const { table } = rows;
  const steps = useMemo(
    () =>
      rows.all().map(({ step, floor_bytes, is_warm_up }) => ({
        step,
        floor: floor_bytes ?? 0,
        isWarmUp: is_warm_up,
      })),
    [table],
  );
  if (steps.length < 2) return null;
  if (steps.every(({ floor }) => floor === 0))
    return (
      <Section title={table.title} note="0 B">
        <p class="muted prose">
          In each of the {steps.length.toLocaleString('en-US')} steps, usage falls to zero at some moment: no
          step leaves memory behind.
        </p>
      </Section>
    );
  const note =
    riseBytes > 0
      ? `rises by ${format(riseBytes, 'bytes')} per step after the warm-up (gray)`
      : 'does not rise steadily; the warm-up is gray';
  return (
    <Section title={table.title} note={note}>
      <Chart
        label={`${table.title}: ${note}`}
        height={HEIGHT_PX}
        optionKey={`${steps.length}|${steps[0]?.floor}|${steps.at(-1)?.floor}|${riseBytes}`}
        option={(color) => floorOption(steps, color)}
      />
    </Section>
  );
}
