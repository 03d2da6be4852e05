/** The frame of a tool that shows one payload: loads it, reports errors, and opens with the verdict. */
import type { ComponentChildren, VNode } from 'preact';
import type { Payload, Verdict as VerdictData } from '../api/types';
import { categoryToken, isCategory } from '../base/color';
import { canOpen } from '../state/catalog';
import { useDiagnosed, usePayloadEarly } from '../state/payload';
import { openTool } from '../state/selection';
import { DiagnosticsBanner, Failed } from '../widgets/states';
import { HeadingSentences } from '../widgets/definition';
import { Verdict } from '../widgets/summary';
import { Reading } from './reading';
import { serverParams, type ToolProps } from './tool';

function VerdictOf({
  verdict,
  isPending = false,
}: {
  verdict: VerdictData | null;
  isPending?: boolean;
}): VNode | null {
  if (!verdict) return null;
  const next = verdict.next.map(({ text, tool, params }) =>
    canOpen(tool) ? { text, open: () => openTool(tool, params) } : { text },
  );
  // A good result has the color of success, not of the time that it does not take.
  const token =
    verdict.level !== 'good' && isCategory(verdict.category)
      ? { token: categoryToken(verdict.category) }
      : {};
  return (
    <Verdict
      level={verdict.level}
      text={verdict.text}
      details={verdict.details}
      next={next}
      isPending={isPending}
      {...token}
    />
  );
}

const sentences = new WeakMap<Payload, ReadonlyMap<string, string>>();

/** What each table and chart of an answer shows, by its title. */
function sentencesOf(payload: Payload): ReadonlyMap<string, string> {
  const known = sentences.get(payload);
  if (known) return known;
  const made = new Map(Object.values(payload.tables).map((table) => [table.title, table.description ?? '']));
  sentences.set(payload, made);
  return made;
}

export interface PayloadPageProps extends ToolProps {
  /** Whether the page lists the diagnostics itself, at its end; then only errors are shown at its top. */
  listsDiagnostics?: boolean;
  /** Parameters that make an answer arrive sooner; it is on screen until the complete one arrives. */
  early?: Readonly<Record<string, string>> | null;
  /** `columns` for large payloads: read and decoded off the main thread. */
  format?: 'json' | 'columns';
  content: (payload: Payload) => ComponentChildren;
  /** Next to the verdict: the part of the run that it covers. */
  beside?: (payload: Payload) => ComponentChildren;
}

export function PayloadPage({
  run,
  hosts,
  params,
  setParams,
  info,
  listsDiagnostics = false,
  early = null,
  format = 'json',
  content,
  beside,
}: PayloadPageProps): VNode {
  const requestParams = serverParams(info, params);
  const query = { tool: info.name, run, hosts, params: requestParams };
  const { data, error, isLoading, retry } = useDiagnosed(
    query,
    usePayloadEarly(query, early, format),
    format,
  );
  if (error) {
    const reset = (): void =>
      setParams(Object.fromEntries(Object.keys(requestParams).map((name) => [name, undefined])), 'push');
    return (
      <Failed
        what={`${info.title} of ${run}`}
        kind={error.kind}
        message={error.message}
        remedy={error.remedy}
        details={error.details}
        onRetry={retry}
        {...(Object.keys(requestParams).length ? { onReset: reset } : {})}
      />
    );
  }
  if (!data) return <Reading run={run} what={`Reading the trace for ${info.title}`} />;
  const isPending = isLoading && !data.is_diagnosed;
  const urgent = data.diagnostics.filter((item) => !listsDiagnostics || item.severity === 'error');
  return (
    <HeadingSentences.Provider value={sentencesOf(data)}>
      <div class="tool-page" aria-busy={isLoading}>
        <DiagnosticsBanner items={urgent} />
        {beside ? (
          <div class="verdict-row">
            <VerdictOf verdict={data.verdict} isPending={isPending} />
            {beside(data)}
          </div>
        ) : (
          <VerdictOf verdict={data.verdict} isPending={isPending} />
        )}
        {content(data)}
      </div>
    </HeadingSentences.Provider>
  );
}
