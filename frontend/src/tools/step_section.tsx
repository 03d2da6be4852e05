/** A payload's steps as a chart, with the zoom in the link. */
import type { ComponentChildren, VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { plural } from '../base/units';
import { StepChart, type StepChartProps, type StepShare } from '../widgets/step_chart';
import { seriesOf, stepNames, type StepPart, type StepRows } from './steps';
import type { ToolProps } from './tool';

interface StepSectionProps extends Pick<ToolProps, 'params' | 'setParams'> {
  steps: StepRows;
  /** The layers to stack, from below. */
  parts: readonly StepPart[];
  share?: StepShare;
  note?: string;
  choice?: StepChartProps['choice'];
  tools?: ComponentChildren;
}

export function StepSection({
  steps,
  parts,
  share,
  note,
  choice,
  tools,
  params,
  setParams,
}: StepSectionProps): VNode {
  const names = useMemo(() => stepNames(steps), [steps]);
  const series = useMemo(() => seriesOf(steps, parts), [steps, parts]);
  return (
    <StepChart
      title={steps.table.title || 'Step time'}
      note={note ?? (steps.table.note || plural(steps.length, 'step'))}
      names={names}
      series={series}
      {...(share ? { share } : {})}
      choice={choice}
      tools={tools}
      zoom={params['steps']}
      onZoom={(zoom) => setParams({ steps: zoom }, 'replace')}
    />
  );
}
