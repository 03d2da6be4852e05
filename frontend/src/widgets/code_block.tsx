/** Code to copy: shown verbatim, with a button that copies it. */
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { copyText } from '../base/clipboard';
import './code_block.css';

const SAID_MS = 1600;

export function CodeBlock({ code, label }: { code: string; label: string }): VNode {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = window.setTimeout(() => setCopied(false), SAID_MS);
    return () => window.clearTimeout(timer);
  }, [isCopied]);
  return (
    <figure class="code-block" aria-label={label}>
      <pre tabIndex={0} aria-label={label}>
        {code}
      </pre>
      <button
        type="button"
        class="button small"
        aria-label={`Copy: ${label}`}
        onClick={() => void copyText(code).then(() => setCopied(true))}
      >
        {isCopied ? 'Copied' : 'Copy'}
      </button>
      <span class="hidden-text" role="status">
        {isCopied ? 'Code copied' : ''}
      </span>
    </figure>
  );
}
