/** The page of a log directory without a profile: how to capture one. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { copyText } from '../base/clipboard';
import { loadRuns } from '../state/catalog';
import { captureInfo } from '../state/capture';
import { Message } from '../widgets/states';
import { CaptureButton, offReason } from './capture/button';

/** One line in the job, before it trains; then its profile can be captured at any time. */
const SERVERS: readonly { framework: string; code: string }[] = [
  { framework: 'JAX', code: 'jax.profiler.start_server(9012)' },
  { framework: 'TensorFlow', code: 'tf.profiler.experimental.server.start(6009)' },
  { framework: 'PyTorch/XLA', code: 'server = torch_xla.debug.profiler.start_server(9012)' },
];
const FROM_THE_PROGRAM = `# JAX
with jax.profiler.trace(logdir):
    step(…).block_until_ready()

# TensorFlow, Keras
model.fit(…, callbacks=[tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 20))])`;

function Snippet({ framework, code }: { framework: string; code: string }): VNode {
  const [isCopied, setCopied] = useState(false);
  return (
    <tr>
      <th scope="row">{framework}</th>
      <td>
        <code>{code}</code>
      </td>
      <td>
        <button type="button" class="button small" aria-label={`Copy the line for ${framework}`} onClick={() => void copyText(code).then(() => setCopied(true))}>
          {isCopied ? 'Copied' : 'Copy'}
        </button>
      </td>
    </tr>
  );
}

/** Where the owner has switched capturing off, only a file can be put there. */
function CaptureHere(): VNode {
  const reason = offReason();
  if (reason) return <p>{reason}</p>;
  return (
    <>
      <p>Start a profiler server in your job with one line, then capture a profile while it runs:</p>
      <table class="snippets">
        <tbody>
          {SERVERS.map((server) => (
            <Snippet key={server.framework} {...server} />
          ))}
        </tbody>
      </table>
      <CaptureButton isMain />
    </>
  );
}

export function NoRuns(): VNode {
  const folder = captureInfo.value?.logdirs.map(({ path }) => path).join(', ');
  return (
    <main class="page">
      <Message title="No profile in this log directory yet.">
        <CaptureHere />
        <details class="from-program">
          <summary>Or save one from the program itself</summary>
          <pre>{FROM_THE_PROGRAM}</pre>
          <p>
            A profile is a file <code>plugins/profile/&lt;time&gt;/&lt;host&gt;.xplane.pb</code> anywhere below {folder ? <code>{folder}</code> : 'the directory that TensorBoard was started on'}.
          </p>
          <button type="button" class="button" onClick={() => void loadRuns(true)}>
            Look again
          </button>
        </details>
      </Message>
    </main>
  );
}
