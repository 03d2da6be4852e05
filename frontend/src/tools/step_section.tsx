/** A payload's steps as a chart, with the zoom in the link. */
import type { ComponentChildren, VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Table } from '../api/types';
import { plural } from '../base/units';
import { StepChart, type StepChartProps, type StepShare } from '../widgets/step_chart';
import { seriesOf, stepNames } from './steps';
import type { ToolProps } from './tool';

interface StepSectionProps extends Pick<ToolProps, 'params' | 'setParams'> {
  steps: Table;
  /** Defines what to stack; absent: the known columns. */
  breakdown?: Table | undefined;
  share?: StepShare;
  note?: string;
  choice?: StepChartProps['choice'];
  tools?: ComponentChildren;
}

export function StepSection({
  steps,
  breakdown,
  share,
  note,
  choice,
  tools,
  params,
  setParams,
}: StepSectionProps): VNode {
  const names = useMemo(() => stepNames(steps), [steps]);
  const series = useMemo(() => seriesOf(steps, breakdown), [steps, breakdown]);
  return (
    <StepChart
      title={steps.title || 'Step time'}
      note={note ?? (steps.note || plural(steps.n_rows, 'step'))}
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
