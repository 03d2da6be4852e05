/**
 * The result of a request for columns, in a form that a worker can transfer: requested, read and decoded in
 * one step.
 */
import { COLUMNS_TYPE, decodeColumns } from './columns';
import type { Payload } from './types';

export type Answer =
  | { readonly kind: 'payload'; readonly payload: Payload }
  /** The server answered, but not with columns. */
  | {
      readonly kind: 'other';
      readonly status: number;
      readonly statusText: string;
      readonly isOk: boolean;
      readonly text: string;
    }
  | { readonly kind: 'unreadable'; readonly status: number }
  | { readonly kind: 'unanswered' };

/** Throws only if the signal was aborted. */
export async function requestColumns(url: string, signal: AbortSignal | null): Promise<Answer> {
  let response: Response;
  try {
    response = await fetch(url, signal ? { signal } : {});
  } catch (error) {
    if (signal?.aborted) throw error;
    return { kind: 'unanswered' };
  }
  const { status, statusText, ok: isOk } = response;
  try {
    if (isOk && response.headers.get('Content-Type')?.startsWith(COLUMNS_TYPE))
      return { kind: 'payload', payload: decodeColumns(await response.arrayBuffer()) };
    return { kind: 'other', status, statusText, isOk, text: await response.text() };
  } catch (error) {
    if (signal?.aborted) throw error;
    return { kind: 'unreadable', status };
  }
}

/** The memory under a payload's columns, each buffer once: transferred instead of copied. */
export function buffersOf(payload: Payload): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const { columns } of Object.values(payload.tables)) {
    for (const column of columns) {
      const array = column.kind === 'text' ? column.codes : column.values;
      if (ArrayBuffer.isView(array) && array.buffer instanceof ArrayBuffer) buffers.add(array.buffer);
    }
  }
  return [...buffers];
}
