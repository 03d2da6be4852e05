/** For each framework, the one line that lets a job be profiled from outside. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { copyText } from '../base/clipboard';

const SERVERS: readonly { framework: string; code: string }[] = [
  { framework: 'JAX', code: 'jax.profiler.start_server(9012)' },
  { framework: 'TensorFlow', code: 'tf.profiler.experimental.server.start(6009)' },
  { framework: 'PyTorch/XLA', code: 'server = torch_xla.debug.profiler.start_server(9012)' },
];

function Snippet({ framework, code }: { framework: string; code: string }): VNode {
  const [isCopied, setCopied] = useState(false);
  return (
    <tr>
      <th scope="row">{framework}</th>
      <td>
        <code>{code}</code>
      </td>
      <td>
        <button
          type="button"
          class="button small"
          aria-label={`Copy the line for ${framework}`}
          onClick={() => void copyText(code).then(() => setCopied(true))}
        >
          {isCopied ? 'Copied' : 'Copy'}
        </button>
      </td>
    </tr>
  );
}

export function ServerLines(): VNode {
  return (
    <table class="snippets" aria-label="The line that starts a profiler server">
      <tbody>
        {SERVERS.map((server) => (
          <Snippet key={server.framework} {...server} />
        ))}
      </tbody>
    </table>
  );
}
