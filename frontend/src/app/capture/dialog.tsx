/** The dialog that captures a profile from a running job: the form, then progress, then the outcome. */
import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import {
  capture,
  captureInfo,
  captureInfoError,
  closeCapture,
  isCapturing,
  loadCaptureInfo,
} from '../../state/capture';
import { Dialog } from '../../widgets/dialog';
import { Failed, Loading } from '../../widgets/states';
import { CaptureFormView } from './form';
import { Progress } from './progress';
import { titleOf } from './progress_model';
import './style.css';

function Body(): VNode {
  const info = captureInfo.value;
  const error = captureInfoError.value;
  if (!info && error)
    return (
      <Failed
        what="What can be captured"
        kind={error.kind}
        message={error.message}
        remedy={error.remedy}
        onRetry={() => void loadCaptureInfo()}
      />
    );
  if (!info) return <Loading what="Loading capture options" bones={[56, 92, 92]} />;
  return capture.value ? <Progress status={capture.value} info={info} /> : <CaptureFormView info={info} />;
}

export function CaptureDialog(): VNode {
  useEffect(() => {
    if (!captureInfo.value) void loadCaptureInfo();
  }, []);
  return (
    <Dialog
      wide
      title={capture.value ? titleOf(capture.value) : 'Capture a profile of a running job'}
      onClose={closeCapture}
      closeLabel={isCapturing.value ? 'Hide' : 'Close'}
    >
      <Body />
    </Dialog>
  );
}
