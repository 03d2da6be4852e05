/** The states of a page other than its content: loading, empty, failed, and diagnostics of the trace. */
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { RichText } from './rich_text';
import './states.css';

const SKELETON_AFTER_MS = 200;
const TEXT_AFTER_MS = 500;
const TICK_MS = 1000;

function useElapsed(): number {
  const [elapsedMs, setElapsed] = useState(0);
  useEffect(() => {
    const start = performance.now();
    const tell = (): void => setElapsed(performance.now() - start);
    const timers = [window.setTimeout(tell, SKELETON_AFTER_MS), window.setTimeout(tell, TEXT_AFTER_MS)];
    const ticker = window.setInterval(tell, TICK_MS);
    return () => {
      timers.forEach((timer) => window.clearTimeout(timer));
      window.clearInterval(ticker);
    };
  }, []);
  return elapsedMs;
}

export interface LoadingProps {
  what: string;
  bones?: number[];
  /** The progress, in words, and as a fraction 0–1 if that is known. */
  progress?: { text: string; fraction: number | null } | null;
}

/** Nothing for 200 ms, then a skeleton, then in words the current work, its progress and its start. */
export function Loading({ what, bones = [56, 92, 200, 280], progress = null }: LoadingProps): VNode {
  const elapsedMs = useElapsed();
  const seconds = Math.floor(elapsedMs / 1000);
  return (
    <div class="loading" role="status" aria-busy="true">
      {elapsedMs >= TEXT_AFTER_MS && (
        <div class="loading-text">
          <p>
            {what}…{seconds >= 1 ? ` ${seconds} s` : ''}
          </p>
          {progress && <p>{progress.text}</p>}
          {progress && progress.fraction !== null && (
            <progress aria-label={what} max={1} value={progress.fraction} />
          )}
        </div>
      )}
      {elapsedMs >= SKELETON_AFTER_MS &&
        bones.map((height, i) => <div key={i} class="bone" style={{ height: `${height}px` }} />)}
    </div>
  );
}

export function Message({
  title,
  children,
  failed = false,
}: {
  title: string;
  children?: ComponentChildren;
  failed?: boolean;
}): VNode {
  return (
    <div class={failed ? 'message failed' : 'message'} role={failed ? 'alert' : undefined}>
      <h2>
        <RichText text={title} />
      </h2>
      {children}
    </div>
  );
}

export interface FailedProps {
  what: string;
  kind: string;
  message: string;
  remedy: string;
  /** Folded: a file's path, the position in it. */
  details?: string | undefined;
  onRetry?: () => void;
  /** Requests again without the link's parameters: a pipeline or a rank may be gone. */
  onReset?: () => void;
}

/** What is wrong, what to do, a button to retry, and folded what helps to look into it. */
export function Failed(props: FailedProps): VNode {
  return (
    <Message failed title={props.message || 'Something went wrong.'}>
      {props.remedy && (
        <p>
          <RichText text={props.remedy} />
        </p>
      )}
      {(props.onRetry || props.onReset) && (
        <div class="message-buttons">
          {props.onRetry && (
            <button type="button" class="button" onClick={props.onRetry}>
              Retry
            </button>
          )}
          {props.onReset && (
            <button type="button" class="button" onClick={props.onReset}>
              Show the default view
            </button>
          )}
        </div>
      )}
      <details class="message-details">
        <summary>Details</summary>
        <p>
          {props.what} · <code>{props.kind}</code>
        </p>
        {props.details && <p class="message-lines">{props.details}</p>}
      </details>
    </Message>
  );
}

export interface DiagnosticItem {
  severity: 'info' | 'warning' | 'error';
  message: string;
  remedy: string;
}

const SEVERITY_NAMES = { info: 'Note', warning: 'Warning', error: 'Error' } as const;
const SEVERITY_RANK = { error: 0, warning: 1, info: 2 } as const;

/** The notices for the end of a page: errors are at its top. */
export function noticesOf<T extends DiagnosticItem>(items: readonly T[]): T[] {
  return items.filter(({ severity }) => severity !== 'error');
}

export function DiagnosticsList({ items }: { items: readonly DiagnosticItem[] }): VNode {
  const sorted = [...items].sort((a, b) => SEVERITY_RANK[a.severity] - SEVERITY_RANK[b.severity]);
  return (
    <ul class="diagnostics-list">
      {sorted.map((item, i) => (
        <li key={i}>
          <span class={`severity ${item.severity}`}>{SEVERITY_NAMES[item.severity]}</span>{' '}
          <RichText text={item.message} />{' '}
          <span class="muted">
            <RichText text={item.remedy} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/**
 * One line that expands: what the user must know to trust the numbers. Notes alone form a banner only on
 * pages without a list of them.
 */
export function DiagnosticsBanner({
  items,
  withNotes = false,
}: {
  items: readonly DiagnosticItem[];
  withNotes?: boolean;
}): VNode | null {
  const serious = items.filter((item) => withNotes || item.severity !== 'info');
  const first = [...serious].sort((a, b) => SEVERITY_RANK[a.severity] - SEVERITY_RANK[b.severity])[0];
  if (!first) return null;
  return (
    <details class={`diagnostics ${first.severity}`}>
      <summary>
        <span class={`severity ${first.severity}`}>{SEVERITY_NAMES[first.severity]}</span>{' '}
        <RichText text={first.message} />
        {items.length > 1 && <span class="muted"> ({items.length - 1} more)</span>}
      </summary>
      {first.remedy && (
        <p class="muted">
          <RichText text={first.remedy} />
        </p>
      )}
      {items.length > 1 && <DiagnosticsList items={items.filter((item) => item !== first)} />}
    </details>
  );
}
