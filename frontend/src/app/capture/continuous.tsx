/**
 * Continuous profiling in the capture dialog: what to record, which targets are profiled, and the buttons
 * that start it, save a snapshot and stop it.
 */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { CaptureInfo, CaptureOption, ContinuousTarget } from '../../api/capture';
import { plural } from '../../base/units';
import { isStarting } from '../../state/capture';
import {
  changing,
  continuousError,
  continuousOutcomes,
  continuousTargets,
  loadContinuous,
} from '../../state/continuous';
import { RichText } from '../../widgets/rich_text';
import {
  changedOptions,
  runningTargets,
  SNAPSHOT_OPTIONS,
  type CaptureForm,
  type FieldErrors,
} from './model';
import { OptionField } from './option_fields';

export interface ContinuousProps {
  form: CaptureForm;
  errors: FieldErrors;
  info: CaptureInfo;
  onOption: (name: string, text: string) => void;
  onChange: (change: Partial<CaptureForm>) => void;
}

function sinceText({ started_unix_ms: started }: ContinuousTarget): string {
  return started === null
    ? 'profiled continuously'
    : `since ${new Date(started).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })}`;
}

/** The targets that are profiled, and what the last start or stop could not do. */
function State({ running }: { running: readonly ContinuousTarget[] }): VNode {
  const failed = continuousOutcomes.value.filter(({ is_ok: isOk }) => !isOk);
  const refused = continuousError.value;
  return (
    <div class="continuous-state" role="status">
      {running.length > 0 && (
        <ul class="capture-targets" aria-label="Profiled continuously">
          {running.map((row) => (
            <li key={row.target} class="active">
              <span class="icon" aria-hidden="true">
                ●
              </span>
              <b>{row.target}</b>
              <span class="state-words">{sinceText(row)}</span>
            </li>
          ))}
        </ul>
      )}
      {[...failed, ...(refused && !refused.parameter ? [refused] : [])].map(({ message, remedy }) => (
        <div key={message} class="message failed" role="alert">
          <p>
            <b>
              <RichText text={message} />
            </b>{' '}
            <RichText text={remedy} />
          </p>
        </div>
      ))}
    </div>
  );
}

export function ContinuousPart({ form, errors, info, onOption, onChange }: ContinuousProps): VNode {
  useEffect(() => void loadContinuous(), []);
  const setContinuous = (name: string, text: string): void =>
    onChange({ continuous: { ...form.continuous, [name]: text } });
  const levels = info.continuous_options.filter(({ kind }) => kind === 'choice');
  const rest = info.continuous_options.filter(({ kind }) => kind !== 'choice');
  const ofSnapshot = info.options.filter(({ name }) => SNAPSHOT_OPTIONS.includes(name));
  const running = runningTargets(form, continuousTargets.value);
  const isWrong = [...rest, ...ofSnapshot].some(({ name }) => errors[name]);
  const isChanged =
    Object.keys({ ...changedOptions(form.continuous, rest), ...changedOptions(form.options, ofSnapshot) })
      .length > 0;
  const [isOpen, setOpen] = useState(isChanged);
  const field = (
    option: CaptureOption,
    options: CaptureForm['options'],
    set: (name: string, text: string) => void,
  ): VNode => (
    <OptionField key={option.name} option={option} options={options} errors={errors} onOption={set} />
  );
  return (
    <>
      <p class="continuous-about muted">
        Start it before the interesting moment; each snapshot then saves what was recorded since the one
        before it. TPUs keep only the latest events. What hosts and GPUs record stays in the job’s memory
        until the next snapshot.
      </p>
      <State running={running} />
      {levels.map((option) => field(option, form.continuous, setContinuous))}
      <details class="more" open={isOpen || isWrong} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{[...rest, ...ofSnapshot].map(({ title }) => title).join(', ')}</summary>
        <div class="more-fields">
          {rest.map((option) => field(option, form.continuous, setContinuous))}
          {ofSnapshot.map((option) => field(option, form.options, onOption))}
        </div>
      </details>
    </>
  );
}

/** Start first; once the targets are profiled, snapshots. Each button names how many targets it is for. */
export function ContinuousFoot({
  form,
  n,
  onStart,
  onStop,
}: {
  form: CaptureForm;
  n: number;
  onStart: () => void;
  onStop: () => void;
}): VNode {
  const nRunning = runningTargets(form, continuousTargets.value).length;
  const isBusy = changing.value !== null || isStarting.value;
  const of = n > 1 ? ` of ${plural(nRunning, 'target')}` : '';
  return (
    <footer class="dialog-foot">
      {nRunning === 0 ? (
        <button type="submit" class="button main" disabled={isBusy}>
          {changing.value === 'start' ? 'Starting…' : n > 1 ? `Start on ${plural(n, 'target')}` : 'Start'}
        </button>
      ) : (
        <button type="submit" class="button main" disabled={isBusy}>
          {isStarting.value ? 'Saving…' : `Save a snapshot${of}`}
        </button>
      )}
      {nRunning > 0 && nRunning < n && (
        <button type="button" class="button" disabled={isBusy} onClick={onStart}>
          {changing.value === 'start' ? 'Starting…' : 'Start the others'}
        </button>
      )}
      {nRunning > 0 && (
        <button type="button" class="button" disabled={isBusy} onClick={onStop}>
          {changing.value === 'stop' ? 'Stopping…' : 'Stop'}
        </button>
      )}
      <span class="muted">
        {nRunning > 0 ? 'What no snapshot has saved is lost when it stops.' : 'It runs until it is stopped.'}
      </span>
    </footer>
  );
}
