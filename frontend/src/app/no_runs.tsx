/** The page for a log directory without a profile: how to capture one. */
import type { VNode } from 'preact';
import { loadRuns } from '../state/catalog';
import { captureInfo } from '../state/capture';
import { Message } from '../widgets/states';
import { CaptureButton, offReason } from './capture/button';
import { ServerLines } from './server_lines';

const FROM_THE_PROGRAM = `# JAX
with jax.profiler.trace(logdir):
    step(…).block_until_ready()

# TensorFlow, Keras
model.fit(…, callbacks=[tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 20))])`;

/** Where capture is switched off, a profile can only be put there as a file. */
function CaptureHere(): VNode {
  const reason = offReason();
  if (reason) return <p>{reason}</p>;
  return (
    <>
      <p>Start a profiler server in your job with one line, then capture a profile while it runs:</p>
      <ServerLines />
      <CaptureButton isMain />
    </>
  );
}

export function NoRuns(): VNode {
  const folder = captureInfo.value?.logdirs.map(({ path }) => path).join(', ');
  return (
    <main class="page">
      <Message title="No profile in this log directory yet.">
        {folder && (
          <p>
            TensorBoard searches below <code>{folder}</code>.
          </p>
        )}
        <CaptureHere />
        <details class="from-program">
          <summary>Or save one from the program itself</summary>
          <pre>{FROM_THE_PROGRAM}</pre>
          <p>
            A profile is a file <code>plugins/profile/&lt;time&gt;/&lt;host&gt;.xplane.pb</code> anywhere
            below {folder ? <code>{folder}</code> : 'the directory that TensorBoard was started on'}.
          </p>
          <button type="button" class="button" onClick={() => void loadRuns(true)}>
            Look again
          </button>
        </details>
      </Message>
    </main>
  );
}
