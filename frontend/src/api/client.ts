/**
 * HTTP client: URLs relative to this module's own, typed answers, failures as ApiError, successful answers
 * cached by URL.
 */
import { Answers } from './answers';
import { COLUMNS_TYPE, decodeColumns } from './columns';
import type { ErrorAnswer, Payload, ProgressAnswer, RunsAnswer, ToolsAnswer } from './types';

export type ToolParams = Readonly<Record<string, string>>;

/** What went wrong and how to fix it; `status` 0: no answer arrived. */
export class ApiError extends Error {
  constructor(
    readonly kind: string,
    message: string,
    readonly remedy: string,
    readonly status: number,
    /** The form field that is wrong; empty: none is known. */
    readonly parameter = '',
    /** For looking into it: a file's path, the position in it. */
    readonly details = '',
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

export interface DataQuery {
  tool: string;
  /** One of the tool's questions; absent: its page. */
  question?: string;
  run: string;
  /** Empty: the server's default (all hosts, or the first). */
  hosts: readonly string[];
  params: ToolParams;
}

/** The downloads that tools offer. */
export type FileFormat = 'csv' | 'trace' | 'events' | 'speedscope' | 'collapsed' | 'perfetto';

const CACHE_ENTRIES = 40;
const cache = new Map<string, unknown>();

let prefix: URL | null = null;

/** The plugin's prefix, given once by the entry module: works under any plugin name and path prefix. */
export function setApiBase(url: URL): void {
  prefix = url;
}

function apiUrl(path: string, query: Record<string, string> = {}): string {
  if (!prefix) throw new Error('setApiBase was not called');
  const url = new URL(path, prefix);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.toString();
}

export function dataUrl(
  query: DataQuery,
  format?: { format: 'json' | 'columns' | FileFormat; table?: string },
): string {
  const hosts: Record<string, string> = query.hosts.length ? { hosts: query.hosts.join(',') } : {};
  const path = query.question ? `${query.tool}/${query.question}` : query.tool;
  return apiUrl(`data/${path}`, {
    ...query.params,
    run: query.run,
    ...hosts,
    ...format,
  });
}

/** The address of a tool's payload in a format. */
export function payloadUrl(query: DataQuery, format: 'json' | 'columns'): string {
  return dataUrl(query, format === 'columns' ? { format } : undefined);
}

async function failure(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  try {
    const { error } = JSON.parse(text) as Partial<ErrorAnswer>;
    if (error) {
      const { kind, message, remedy, parameter, details } = error;
      return new ApiError(kind, message, remedy, response.status, parameter, details);
    }
  } catch {
    // Not ours: a proxy or TensorBoard itself answered.
  }
  return new ApiError(
    'http',
    `The server answered ${response.status} ${response.statusText}`.trim(),
    "Reload; TensorBoard's log may have details.",
    response.status,
  );
}

async function request(url: string, signal?: AbortSignal, post: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, signal ? { ...post, signal } : post);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw unanswered();
  }
  if (!response.ok) throw await failure(response);
  return response;
}

function remember(url: string, answer: unknown): void {
  cache.delete(url);
  cache.set(url, answer);
  const oldest = cache.keys().next();
  if (cache.size > CACHE_ENTRIES && !oldest.done) cache.delete(oldest.value);
}

/** The cached answer of a URL, without waiting. */
export function cached<T>(url: string): T | undefined {
  return cache.get(url) as T | undefined;
}

export function forgetAnswers(): void {
  cache.clear();
}

const answers = new Answers(
  () => new Worker(new URL('./answer_worker.ts', import.meta.url), { type: 'module' }),
);

/** Columns can be megabytes, so the worker fetches them. */
async function readColumns(url: string, signal?: AbortSignal): Promise<unknown> {
  const answer = await answers.ask(url, signal ?? null);
  if (answer.kind === 'payload') return answer.payload;
  if (answer.kind === 'unanswered') throw unanswered();
  if (answer.kind === 'unreadable') throw unreadable(answer.status);
  const { status, statusText, isOk, text } = answer;
  const response = new Response(text, { status, statusText });
  if (!isOk) throw await failure(response);
  return read(response);
}

function unanswered(): ApiError {
  return new ApiError(
    'network',
    'The server does not answer.',
    'Is TensorBoard still running? Start it again, then retry.',
    0,
  );
}

function unreadable(status: number): ApiError {
  return new ApiError(
    'bad_answer',
    'The server sent an answer that cannot be read.',
    'Reload the page; if the error persists, please report it.',
    status,
  );
}

async function read(response: Response): Promise<unknown> {
  try {
    const isBinary = response.headers.get('Content-Type')?.startsWith(COLUMNS_TYPE);
    return isBinary ? decodeColumns(await response.arrayBuffer()) : await response.json();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw unreadable(response.status);
  }
}

/** Requests in progress that any caller may share. */
const underWay = new Map<string, Promise<unknown>>();

async function load(url: string, signal?: AbortSignal): Promise<unknown> {
  const answer =
    new URL(url).searchParams.get('format') === 'columns'
      ? await readColumns(url, signal)
      : await read(await request(url, signal));
  remember(url, answer);
  return answer;
}

/**
 * A request that can be aborted belongs to its caller alone, unless the same request is already in progress;
 * the others are shared.
 */
async function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  const cachedAnswer = cached<T>(url);
  if (cachedAnswer !== undefined) return cachedAnswer;
  if (signal && !underWay.has(url)) return (await load(url, signal)) as T;
  const shared = underWay.get(url) ?? load(url).finally(() => underWay.delete(url));
  underWay.set(url, shared);
  return (await shared) as T;
}

/** Never cached: answers that change by themselves. */
export async function fetchFresh<T>(path: string, query: Record<string, string> = {}): Promise<T> {
  return (await read(await request(apiUrl(path, query)))) as T;
}

/**
 * Makes the server do something. The token proves that the request comes from our own page, and no other page
 * that the browser has open.
 */
export async function post<T>(path: string, token: string, body: object, keepalive = false): Promise<T> {
  const headers = { 'Content-Type': 'application/json', 'X-Tpuprof-Token': token };
  return (await read(
    await request(apiUrl(path), undefined, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      keepalive,
    }),
  )) as T;
}

/** Not cached: runs come and go. */
export function fetchRuns(): Promise<RunsAnswer> {
  return fetchFresh<RunsAnswer>('runs');
}

/** Progress of reading a run. */
export function fetchProgress(run: string): Promise<ProgressAnswer> {
  return fetchFresh<ProgressAnswer>('progress', { run });
}

export function toolsUrl(run: string): string {
  return apiUrl('tools', { run });
}

export function fetchTools(run: string): Promise<ToolsAnswer> {
  return get<ToolsAnswer>(toolsUrl(run));
}

/** The payload of a tool; `columns` for large payloads. */
export function fetchPayload(
  query: DataQuery,
  format: 'json' | 'columns' = 'json',
  signal?: AbortSignal,
): Promise<Payload> {
  return get<Payload>(payloadUrl(query, format), signal);
}

/** The body of a download, unchanged; failures as ApiError, which a plain link would hide. */
export async function fetchFile(query: DataQuery, format: FileFormat, signal?: AbortSignal): Promise<Blob> {
  return (await request(dataUrl(query, { format }), signal)).blob();
}
