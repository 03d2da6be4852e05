/**
 * Loads the payload of a tool for the current selection, keeps the last one on screen while a parameter
 * changes, and can retry.
 */
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, cached, fetchPayload, payloadUrl, type DataQuery, type ToolParams } from '../api/client';
import type { Payload } from '../api/types';

export interface Loaded<T> {
  /** The answer; while a new one loads, the last one of the same run and tool. */
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
  retry(): void;
}

/** The payload on the page now, for the export menu; null: nothing to export. */
export const shown = signal<{ query: DataQuery; payload: Payload } | null>(null);

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(
    'defect',
    error instanceof Error ? error.message : String(error),
    'Reload the page; if the error persists, please report it.',
    0,
  );
}

/**
 * Runs `load` whenever `key` changes; an empty key waits. `keepKey`: while it stays the same, the last answer
 * is kept until the next one arrives.
 */
export function useLoaded<T>(
  key: string,
  keepKey: string,
  load: (signal: AbortSignal) => Promise<T>,
  initial?: T,
): Loaded<T> {
  const [state, setState] = useState<{
    key: string;
    keepKey: string;
    data: T | null;
    error: ApiError | null;
  }>({ key: '', keepKey: '', data: null, error: null });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!key) return;
    if (initial !== undefined) {
      setState({ key, keepKey, data: initial, error: null });
      return;
    }
    const abort = new AbortController();
    load(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ key, keepKey, data, error: null }),
      (error: unknown) =>
        !abort.signal.aborted && setState({ key, keepKey, data: null, error: asApiError(error) }),
    );
    return () => abort.abort();
    // `load` is made anew at each render; the key says when it means something else.
  }, [key, attempt]);
  const retry = (): void => {
    setState({ key: '', keepKey: '', data: null, error: null });
    setAttempt(attempt + 1);
  };
  if (key && state.key === key)
    return {
      data: state.data,
      error: state.error,
      isLoading: state.data === null && state.error === null,
      retry,
    };
  if (initial !== undefined) return { data: initial, error: null, isLoading: false, retry };
  return { data: state.keepKey === keepKey ? state.data : null, error: null, isLoading: true, retry };
}

/**
 * As `usePayload`, but first on screen is the answer to the same question with the parameters `early`, which
 * comes sooner. It is requested until the complete answer has arrived once: from then on the server has read
 * the slow part. null: only the complete answer.
 */
export function usePayloadEarly(
  query: DataQuery,
  early: ToolParams | null,
  format: 'json' | 'columns',
): Loaded<Payload> {
  const read = useRef('');
  const of = `${query.run}\n${query.tool}\n${query.hosts.join(',')}`;
  const first = { ...query, params: { ...query.params, ...early } };
  const url =
    early && read.current !== of && !cached<Payload>(payloadUrl(query, format))
      ? payloadUrl(first, format)
      : '';
  const soon = useLoaded(
    url,
    url,
    (abort) => fetchPayload(first, format, abort),
    url ? cached<Payload>(url) : undefined,
  );
  // One after the other: otherwise the server would queue the short question behind the long one.
  const whole = usePayload(query, format, Boolean(url) && soon.isLoading);
  useEffect(() => {
    if (whole.data && !whole.isLoading) read.current = of;
  }, [whole.data, whole.isLoading]);
  return url && whole.isLoading && soon.data ? { ...whole, data: soon.data } : whole;
}

/** `loaded`, and as soon as the server knows what limits the job, the payload whose verdict includes it. */
export function useDiagnosed(
  query: DataQuery,
  loaded: Loaded<Payload>,
  format: 'json' | 'columns',
): Loaded<Payload> {
  const isPending = loaded.data?.is_diagnosed === false && !loaded.isLoading;
  const whole = { ...query, params: { ...query.params, diagnosis: 'wait' } };
  const url = isPending ? payloadUrl(whole, format) : '';
  // If that fails the page stays as it is: its numbers are correct without it.
  const later = useLoaded(
    url,
    url,
    (abort) => fetchPayload(whole, format, abort),
    url ? cached<Payload>(url) : undefined,
  );
  const { data } = later;
  useEffect(() => {
    if (data) shown.value = { query, payload: data };
  }, [data]);
  if (!isPending) return loaded;
  return { ...loaded, data: data ?? loaded.data, isLoading: later.isLoading };
}

/** The payload of a tool, also used by the export menu. `waits`: do not request it yet. */
function usePayload(query: DataQuery, format: 'json' | 'columns' = 'json', waits = false): Loaded<Payload> {
  const url = payloadUrl(query, format);
  const loaded = useLoaded(
    waits ? '' : url,
    `${query.run}\n${query.tool}`,
    (abort) => fetchPayload(query, format, abort),
    cached<Payload>(url),
  );
  const { data } = loaded;
  useEffect(() => {
    shown.value = data ? { query, payload: data } : null;
    return () => {
      shown.value = null;
    };
  }, [data]);
  return loaded;
}
