import { afterEach, describe, expect, it, vi } from 'vitest';
import { buffersOf, type Answer } from './answer';
import { Answers, type FromWorker, type ToWorker } from './answers';
import type { Payload } from './types';

const FOUND: Answer = { kind: 'other', status: 200, statusText: 'OK', isOk: true, text: '{}' };

class FakeWorker {
  readonly told: ToWorker[] = [];
  isTerminated = false;
  onmessage: ((event: { data: FromWorker }) => void) | null = null;
  onerror: (() => void) | null = null;
  onmessageerror: (() => void) | null = null;
  postMessage(message: ToWorker): void {
    this.told.push(message);
  }
  terminate(): void {
    this.isTerminated = true;
  }
}

function asked(): { worker: FakeWorker; answers: Answers } {
  const worker = new FakeWorker();
  return { worker, answers: new Answers(() => worker as unknown as Worker) };
}

function stubFetch(body: string): void {
  vi.stubGlobal(
    'fetch',
    vi.fn(() => Promise.resolve(new Response(body, { status: 200 }))),
  );
}

describe('answers', () => {
  afterEach(() => vi.unstubAllGlobals());

  it('go to the question they belong to, in whatever order they come', async () => {
    const { worker, answers } = asked();
    const [first, second] = [answers.ask('/a', null), answers.ask('/b', null)];
    expect(worker.told.map(({ url }) => url)).toEqual(['/a', '/b']);
    worker.onmessage?.({ data: { id: 1, answer: { kind: 'unanswered' } } });
    worker.onmessage?.({ data: { id: 0, answer: FOUND } });
    expect(await first).toEqual(FOUND);
    expect(await second).toEqual({ kind: 'unanswered' });
  });

  it('are cancelled in the worker too, and a late one is ignored', async () => {
    const { worker, answers } = asked();
    const abort = new AbortController();
    const question = answers.ask('/a', abort.signal);
    abort.abort();
    await expect(question).rejects.toMatchObject({ name: 'AbortError' });
    expect(worker.told.at(-1)).toEqual({ id: 0, url: null });
    worker.onmessage?.({ data: { id: 0, answer: FOUND } });
  });

  it('come from the main thread if the worker fails, pending ones too', async () => {
    const { worker, answers } = asked();
    stubFetch('from here');
    const owed = answers.ask('/a', null);
    expect(fetch).not.toHaveBeenCalled();
    worker.onerror?.();
    expect(await owed).toMatchObject({ text: 'from here' });
    expect(worker.isTerminated).toBe(true);
    expect(await answers.ask('/b', null)).toMatchObject({ text: 'from here' });
    expect(worker.told).toHaveLength(1);
  });

  it('come from the main thread where no worker can be started', async () => {
    stubFetch('from here');
    const answers = new Answers(() => {
      throw new Error('no workers here');
    });
    expect(await answers.ask('/a', null)).toMatchObject({ kind: 'other', text: 'from here' });
  });

  it('hand over each piece of memory once', () => {
    const shared = new ArrayBuffer(16);
    const columns = [
      { kind: 'number', values: new Uint8Array(shared, 0, 8) },
      { kind: 'text', codes: new Uint8Array(shared, 8, 8) },
      { kind: 'number', values: new Float64Array(2) },
      { kind: 'number', values: [1, null] },
    ];
    expect(
      buffersOf({ tables: { boxes: { columns } } } as unknown as Payload).map(({ byteLength }) => byteLength),
    ).toEqual([16, 16]);
  });
});
