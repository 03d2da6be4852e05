/**
 * Loads the payload of a tool for what is chosen, keeps the last one on screen while a parameter changes, and
 * can retry.
 */
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, cached, fetchPayload, payloadUrl, type DataQuery, type ToolParams } from '../api/client';
import type { Payload } from '../api/types';

export interface Loaded<T> {
  /** The answer; while a new one comes, the last one of the same run and tool. */
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
  retry(): void;
}

/** What the page shows now, for the export menu; null: nothing that could be exported. */
export const shown = signal<{ query: DataQuery; payload: Payload } | null>(null);

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(
    'defect',
    error instanceof Error ? error.message : String(error),
    'Reload the page; if it stays, please report it.',
    0,
  );
}

/**
 * Runs `load` whenever `key` changes; an empty key waits. `keepKey`: as long as it stays, the last answer is
 * kept while the next one loads.
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
 * comes sooner. It is asked
 * for until the whole one was there once: from then on the server has read what that waits for. null: the
 * whole answer alone.
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
  // One after the other: the server would let the short question wait for the long one.
  const whole = usePayload(query, format, Boolean(url) && soon.isLoading);
  useEffect(() => {
    if (whole.data && !whole.isLoading) read.current = of;
  }, [whole.data, whole.isLoading]);
  return url && whole.isLoading && soon.data ? { ...whole, data: soon.data } : whole;
}

/** `loaded`, and as soon as the server knows what limits the job, the payload whose verdict considers it. */
export function useDiagnosed(
  query: DataQuery,
  loaded: Loaded<Payload>,
  format: 'json' | 'columns',
): Loaded<Payload> {
  const isPending = loaded.data?.is_diagnosed === false && !loaded.isLoading;
  const whole = { ...query, params: { ...query.params, diagnosis: 'wait' } };
  const url = isPending ? payloadUrl(whole, format) : '';
  // Where that fails the page stays as it is: its numbers are right without.
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

/** The payload of a tool; it is also what the export menu exports. `waits`: it is not asked for yet. */
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
