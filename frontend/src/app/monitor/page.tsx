/** A job while it runs: its targets, the newest numbers, their history, and every sample. */
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { CaptureInfo, MonitorSample } from '../../api/capture';
import { captureInfo, captureInfoError, loadCaptureInfo } from '../../state/capture';
import { isMonitoring, isMonitorSilent, monitor, monitorError, samples } from '../../state/monitor';
import { Failed, Loading, Message } from '../../widgets/states';
import { Legend, Section, Tiles, Verdict } from '../../widgets/summary';
import type { TableColumn } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { TimeChart } from '../../widgets/time_chart';
import { offReason } from '../capture/button';
import { ServerLines } from '../server_lines';
import { MonitorFormView, Watching } from './form';
import { clockText, seriesOf, tableOf, TIME_COLUMN, tilesOf, verdictOf } from './model';
import './style.css';

const CHARTS = [
  {
    title: 'Waiting for input',
    measure: 'input_fraction_avg',
    token: '--c-input',
    band: { low: 'input_fraction_min', high: 'input_fraction_max' },
  },
  { title: 'Device idle', measure: 'device_idle_fraction', token: '--c-launch' },
  { title: 'Matrix unit', measure: 'matrix_unit_fraction', token: '--c-compute' },
] as const;
const STEP_BAND = { low: 'step_time_min_ps', high: 'step_time_max_ps' } as const;

function Charts({ all }: { all: readonly MonitorSample[] }): VNode {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const steps = seriesOf(all, 'step_time_avg_ps', '--c-compute', STEP_BAND);
  const shown = <T extends { name: string }>(series: readonly T[]): T[] =>
    series.filter(({ name }) => !hidden.has(name));
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  const legend =
    steps.length > 1 ? (
      <Legend
        items={steps.map(({ name, token }) => ({ name, title: name, token }))}
        hidden={hidden}
        onToggle={toggle}
      />
    ) : undefined;
  const measured = CHARTS.filter(({ measure }) => all.some((sample) => sample[measure] !== null));
  const hasSteps = all.some((sample) => sample.step_time_avg_ps !== null);
  return (
    <>
      {hasSteps && (
        <Section
          title="Step time"
          tip="Step time of each sample while the job runs"
          note="average per sample, with its shortest and longest step"
          end={legend}
        >
          <TimeChart title="Step time" unit="ps" series={shown(steps)} />
        </Section>
      )}
      {measured.length > 0 && (
        <div class="monitor-charts">
          {measured.map(({ title, measure, token, ...more }) => (
            <Section
              key={title}
              title={title}
              {...(measure === 'input_fraction_avg' ? { note: 'share of step time' } : {})}
            >
              <TimeChart
                title={title}
                unit="fraction"
                height={180}
                series={shown(seriesOf(all, measure, token, 'band' in more ? more.band : undefined))}
              />
            </Section>
          ))}
        </div>
      )}
    </>
  );
}

function Samples({ all }: { all: readonly MonitorSample[] }): VNode {
  const data = useMemo(() => tableOf(all), [all]);
  const cell = (column: TableColumn, _row: number, text: string): string | undefined =>
    column.name === TIME_COLUMN ? clockText(text) : undefined;
  return (
    <Section title="Samples" tip="What each sample measured" note="newest first">
      <Table data={data} label="Samples" mono={['target']} render={cell} rowsInFull={12} maxHeight="420px" />
    </Section>
  );
}

function Problem(): VNode | null {
  const error = monitorError.value;
  const ended = monitor.value;
  if (error && !error.parameter)
    return <Failed what="Monitor" kind={error.kind} message={error.message} remedy={error.remedy} />;
  if (ended?.state === 'failed')
    return <Failed what="Monitor" kind="failed" message={ended.message} remedy={ended.remedy} />;
  if (isMonitorSilent.value && isMonitoring.value)
    return (
      <Message
        failed
        title="TensorBoard does not answer; retrying. Samples taken meanwhile appear when it does."
      />
    );
  return null;
}

function Beginning(): VNode {
  return (
    <Section
      title="Requirements"
      tip="What the job must start so that it can be monitored"
      note="one line in the job, before it trains"
    >
      <ServerLines />
      <p class="muted prose">
        Cloud TPUs report their own numbers. Other jobs are profiled briefly at each interval, and the
        profiles are analyzed here: each costs the job as much as a capture of that length, and steps need
        step markers in the job.
      </p>
    </Section>
  );
}

function Live({ info }: { info: CaptureInfo }): VNode {
  const all = samples.value;
  const answer = monitor.value;
  const tiles = tilesOf(all);
  const verdict = verdictOf(answer, all);
  const isStopped = answer?.state === 'stopped';
  const details = isStopped && answer.message ? [answer.message, ...verdict.details] : verdict.details;
  return (
    <div class="tool-page">
      {isMonitoring.value ? <Watching /> : <MonitorFormView info={info} />}
      <Problem />
      {answer && (answer.state !== 'failed' || verdict.level !== 'bad') && (
        <Verdict
          level={verdict.level}
          text={verdict.text}
          details={details}
          next={[]}
          {...(verdict.level === 'unknown' && all.length ? { token: '--accent' } : {})}
        />
      )}
      {tiles.some(({ value }) => value !== null) && <Tiles tiles={tiles} />}
      {all.length > 0 && <Charts all={all} />}
      {all.length > 0 && <Samples all={all} />}
      {!answer && <Beginning />}
    </div>
  );
}

export function MonitorPage(): VNode {
  const info = captureInfo.value;
  const error = captureInfoError.value;
  const reason = offReason();
  if (!info && error)
    return (
      <Failed
        what="What can be monitored"
        kind={error.kind}
        message={error.message}
        remedy={error.remedy}
        details={error.details}
        onRetry={() => void loadCaptureInfo()}
      />
    );
  if (!info) return <Loading what="Loading monitoring options" bones={[56, 92]} />;
  if (reason) return <Message title="Monitoring is unavailable on this server.">{<p>{reason}</p>}</Message>;
  return <Live info={info} />;
}
