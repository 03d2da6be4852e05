/**
 * Fetches columns off the main thread: the bytes of a large answer arrive and become numbers without delaying
 * a frame.
 */
import { requestColumns, buffersOf } from './answer';
import type { FromWorker, ToWorker } from './answers';

interface Port {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker, transfer: Transferable[]): void;
}

const port = globalThis as unknown as Port;
const underWay = new Map<number, AbortController>();

async function answer(id: number, url: string): Promise<void> {
  const abort = new AbortController();
  underWay.set(id, abort);
  try {
    const answer = await requestColumns(url, abort.signal);
    port.postMessage({ id, answer }, answer.kind === 'payload' ? buffersOf(answer.payload) : []);
  } catch {
    // Given up: nobody waits.
  } finally {
    underWay.delete(id);
  }
}

port.onmessage = ({ data }) => {
  if (data.url === null) underWay.get(data.id)?.abort();
  else void answer(data.id, data.url);
};
