/** One channel in every step: send delay and latency as bars; a click chooses the step. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readTable } from '../../api/declared';
import { plural } from '../../base/units';
import { StepChart } from '../../widgets/step_chart';
import { seriesOf, type StepPart } from '../steps';
import type { ToolProps } from '../tool';
import { useDetail } from './detail';
import { CHANNEL_STEPS } from './model';

const PARTS: readonly StepPart[] = [
  { column: 'send_delay_ps', category: 'Send delay', color: 'input' },
  { column: 'latency_ps', category: 'Latency', color: 'collective' },
];

interface ChannelStepsProps extends ToolProps {
  title: string;
  /** Row of the channel. */
  channel: number;
  steps: readonly string[];
  /** Row of the chosen step; -1: the mean of all. */
  step: number;
}

export function ChannelSteps(props: ChannelStepsProps): VNode | null {
  const { title, channel, steps, step, params, setParams } = props;
  const query = { channel: String(channel) };
  const { data } = useDetail(props, 'channel', query, 'json', `channel ${channel}`);
  const series = useMemo(() => (data ? seriesOf(readTable(data, CHANNEL_STEPS), PARTS) : []), [data]);
  return (
    <StepChart
      title={title}
      tip="How long the channel takes in each step, between the two ends of the channel"
      note={plural(steps.length, 'step')}
      names={[...steps]}
      series={series}
      zoom={params['channel_steps']}
      onZoom={(zoom) => setParams({ channel_steps: zoom }, 'replace')}
      choice={{
        row: step,
        choose: (row) => setParams({ step: row === step ? undefined : String(row) }, 'replace'),
        hint: 'Click to show this step',
      }}
    />
  );
}
