/** A capture in progress or its outcome: a row per target with its state, and a remedy where one failed. */
import type { VNode } from 'preact';
import type { CaptureInfo, CaptureStatus, TargetStatus } from '../../api/capture';
import {
  cancelCapture,
  closeCapture,
  dismissCapture,
  isSilent,
  openCaptured,
  startError,
} from '../../state/capture';
import { run } from '../../state/selection';
import { RichText } from '../../widgets/rich_text';
import { refill, startAgain } from './form';
import { failedTargets, newsOf, rowOf, secondsText } from './progress_model';

function Bar({ fraction, level, label }: { fraction: number | null; level: string; label: string }): VNode {
  const valueNow = fraction === null ? {} : { 'aria-valuenow': Math.round(fraction * 100) };
  return (
    <div
      class={`bar ${level}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      {...valueNow}
    >
      <i
        class={fraction === null ? 'unknown' : ''}
        style={fraction === null ? {} : { width: `${fraction * 100}%` }}
      />
    </div>
  );
}

function Why({ message, remedy }: { message: string; remedy: string }): VNode | null {
  if (!message && !remedy) return null;
  return (
    <p class="why">
      <RichText text={message} />{' '}
      <span class="muted">
        <RichText text={remedy} />
      </span>
    </p>
  );
}

function TargetRow({ target }: { target: TargetStatus }): VNode {
  const { icon, words, fraction, level } = rowOf(target);
  return (
    <li class={level} data-state={target.state}>
      <span class="icon" aria-hidden="true">
        {icon}
      </span>
      <b>{target.target}</b>
      <span class="state-words">{words}</span>
      <Bar fraction={fraction} level={level} label={target.target} />
      {target.state !== 'cancelled' && <Why message={target.message} remedy={target.remedy} />}
    </li>
  );
}

function Ended({ status, info }: { status: CaptureStatus; info: CaptureInfo }): VNode {
  const failed = failedTargets(status);
  const isSaved = status.state === 'done';
  const retryFailed = (): void => {
    refill({ mode: 'address', targets: failed.map(({ target }) => target).join(', ') });
    dismissCapture();
  };
  return (
    <footer class="dialog-foot">
      {isSaved && (
        <button
          type="button"
          class="button main"
          onClick={() => {
            if (run.value !== status.run) openCaptured();
            closeCapture();
          }}
        >
          Open the profile
        </button>
      )}
      {isSaved && failed.length > 0 && (
        <button type="button" class="button" onClick={retryFailed}>
          Capture the failed {failed.length > 1 ? 'ones' : 'one'} again
        </button>
      )}
      {!isSaved && (
        <button type="button" class="button main" onClick={() => startAgain(info)}>
          Try again
        </button>
      )}
      {!isSaved && (
        <button type="button" class="button" onClick={dismissCapture}>
          Change the settings
        </button>
      )}
    </footer>
  );
}

export function Progress({ status, info }: { status: CaptureStatus; info: CaptureInfo }): VNode {
  const isRunning = status.state === 'running';
  const refused = startError.value;
  return (
    <div class="capture-progress">
      <p class="hidden-text" role="status" aria-live="polite">
        {newsOf(status)}
      </p>
      {status.targets.length > 0 && (
        <ul class="capture-targets" aria-label="Targets">
          {status.targets.map((target) => (
            <TargetRow key={target.target} target={target} />
          ))}
        </ul>
      )}
      {!status.targets.some(({ message }) => message) && (
        <Why message={status.message} remedy={status.remedy} />
      )}
      {isRunning && isSilent.value && (
        <p class="why">The server does not answer; retrying. Is TensorBoard still running?</p>
      )}
      {refused && (
        <div class="message failed" role="alert">
          <Why message={refused.message} remedy={refused.remedy} />
        </div>
      )}
      {isRunning ? (
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={() => void cancelCapture()}>
            Cancel
          </button>
          <span class="muted">
            {secondsText(status.elapsed_ms)} so far. The profile opens when it is done.
          </span>
        </footer>
      ) : (
        <Ended status={status} info={info} />
      )}
    </div>
  );
}
