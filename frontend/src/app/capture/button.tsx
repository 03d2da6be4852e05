/**
 * The button that opens the dialog; it shows the progress of a running capture and afterwards its outcome.
 */
import type { VNode } from 'preact';
import {
  capture,
  captureInfo,
  hasNews,
  isCaptureOpen,
  isCapturing,
  openCapture,
  openCaptured,
} from '../../state/capture';
import { useLazy } from '../lazy';
import { Dialog } from '../../widgets/dialog';
import { Failed } from '../../widgets/states';
import { closeCapture } from '../../state/capture';
import { failedTargets, secondsText, wholeFraction } from './progress_model';

const loadDialog = (): Promise<() => VNode> => import('./dialog').then((module) => module.CaptureDialog);

/** Why capture is unavailable here, or an empty text. */
export function offReason(): string {
  const info = captureInfo.value;
  return info && !info.enabled ? info.reason || 'Capture is switched off on this server.' : '';
}

function labelOf(): string {
  const status = capture.value;
  if (isCapturing.value)
    return status?.elapsed_ms ? `Capturing · ${secondsText(status.elapsed_ms)}` : 'Capturing…';
  if (!hasNews.value || !status) return 'Capture profile';
  if (status.state === 'failed') return 'Capture failed: see why';
  const failed = failedTargets(status).length;
  return failed ? `Captured; ${failed} of ${status.targets.length} failed` : 'Profile ready: open it';
}

export function CaptureButton({
  isSmall = false,
  isMain = false,
}: {
  isSmall?: boolean;
  isMain?: boolean;
}): VNode {
  const status = capture.value;
  const reason = offReason();
  const label = labelOf();
  const isReady = hasNews.value && status?.state === 'done' && !failedTargets(status).length;
  const isFailed = hasNews.value && status?.state === 'failed';
  const act = (): void => {
    if (reason) return;
    if (isReady) openCaptured();
    else openCapture();
  };
  const fraction = isCapturing.value && status ? wholeFraction(status) : 0;
  return (
    <button
      type="button"
      class={`button capture-button ${isMain ? 'main' : 'outlined'} ${isFailed ? 'failed' : ''}`}
      aria-haspopup="dialog"
      aria-disabled={reason ? 'true' : undefined}
      aria-label={isSmall ? label : undefined}
      data-tip={reason || (isSmall ? label : undefined)}
      style={{ '--done': `${fraction * 100}%` }}
      onClick={act}
    >
      {isSmall ? <span aria-hidden="true">{isFailed ? '✕' : isReady ? '✓' : '●'}</span> : label}
    </button>
  );
}

/** The dialog, loaded when it is first opened. */
function LazyDialog(): VNode | null {
  const { part: Shown, error, retry } = useLazy(loadDialog);
  if (error) {
    return (
      <Dialog title="Capture profile" onClose={closeCapture}>
        <Failed
          what="The dialog"
          kind="page"
          message="The dialog could not be loaded."
          remedy="Reload TensorBoard."
          onRetry={retry}
        />
      </Dialog>
    );
  }
  return Shown ? <Shown /> : null;
}

export function CaptureDialogSlot(): VNode | null {
  return isCaptureOpen.value ? <LazyDialog /> : null;
}
