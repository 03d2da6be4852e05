/**
 * Sends requests to the worker and returns its answers; where a browser starts no worker, the main thread
 * makes the request.
 */
import { requestColumns, type Answer } from './answer';

/** `url` null: the request is cancelled. */
export interface ToWorker {
  readonly id: number;
  readonly url: string | null;
}

export interface FromWorker {
  readonly id: number;
  readonly answer: Answer;
}

interface Question {
  readonly url: string;
  readonly signal: AbortSignal | null;
  readonly resolve: (answer: Answer | Promise<Answer>) => void;
}

export class Answers {
  /** undefined: not started; null: unavailable. */
  private worker: Worker | null | undefined;
  private readonly open = new Map<number, Question>();
  private nAsked = 0;

  constructor(private readonly start: () => Worker) {}

  /** Rejects only where the signal is aborted, with its reason. */
  ask(url: string, signal: AbortSignal | null): Promise<Answer> {
    const worker = this.started();
    if (!worker || signal?.aborted) return requestColumns(url, signal);
    const id = this.nAsked++;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        if (!this.open.delete(id)) return;
        worker.postMessage({ id, url: null } satisfies ToWorker);
        reject(signal?.reason as Error);
      };
      const settle: Question['resolve'] = (answer) => {
        signal?.removeEventListener('abort', giveUp);
        resolve(answer);
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      this.open.set(id, { url, signal, resolve: settle });
      worker.postMessage({ id, url } satisfies ToWorker);
    });
  }

  private started(): Worker | null {
    if (this.worker !== undefined) return this.worker;
    try {
      this.worker = this.start();
    } catch {
      this.worker = null;
      return null;
    }
    this.worker.onmessage = ({ data: { id, answer } }: MessageEvent<FromWorker>) => {
      const question = this.open.get(id);
      this.open.delete(id);
      question?.resolve(answer);
    };
    // The worker did not load, or an answer could not be transferred: the main thread repeats what is
    // pending, and makes all later requests.
    this.worker.onerror = this.worker.onmessageerror = () => {
      this.doWithout();
    };
    return this.worker;
  }

  private doWithout(): void {
    this.worker?.terminate();
    this.worker = null;
    const owed = [...this.open.values()];
    this.open.clear();
    for (const { url, signal, resolve } of owed) resolve(requestColumns(url, signal));
  }
}
