/**
 * Hands a trace to Perfetto's page in a window of its own, as its documentation describes: PING until it
 * answers PONG, then the file. The file goes from window to window inside the browser.
 */

import { PERFETTO } from '../../perfetto_link';

const PING_EVERY_MS = 100;
const PATIENCE_MS = 30_000;

/** What of a window the handshake needs, so that a test can stand in for it. */
export interface Opener {
  open(url: string, target: string): Pick<Window, 'postMessage' | 'closed'> | null;
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
  removeEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
}

export interface HandedTrace {
  readonly title: string;
  readonly fileName: string;
  readonly buffer: ArrayBuffer;
}

/** Perfetto's window is blocked, closed or silent; the message is a sentence for the user. */
export class PerfettoAbsent extends Error {}

type Opened = NonNullable<ReturnType<Opener['open']>>;

/** Resolves once the page has answered. */
async function answered(opener: Opener, opened: Opened): Promise<void> {
  let stop = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const onMessage = ({ source, origin, data }: MessageEvent): void => {
        if (source === (opened as unknown) && origin === PERFETTO && data === 'PONG') resolve();
      };
      const ping = setInterval(() => {
        if (opened.closed) reject(new PerfettoAbsent('Perfetto’s window was closed before it had loaded.'));
        else opened.postMessage('PING', PERFETTO);
      }, PING_EVERY_MS);
      const late = setTimeout(() => {
        reject(
          new PerfettoAbsent(
            `${PERFETTO} did not answer within ${String(PATIENCE_MS / 1000)} s: this browser may be offline. Save the file and open it in a copy of Perfetto instead.`,
          ),
        );
      }, PATIENCE_MS);
      stop = () => {
        clearInterval(ping);
        clearTimeout(late);
        opener.removeEventListener('message', onMessage);
      };
      opener.addEventListener('message', onMessage);
    });
  } finally {
    stop();
  }
}

/**
 * To be called while a click is handled, or browsers block the window; `make` supplies the file meanwhile.
 * Rejects with a sentence for the user, or with what `make` rejects with.
 */
export async function openInPerfetto(
  make: () => Promise<HandedTrace>,
  opener: Opener = window,
): Promise<void> {
  const opened = opener.open(PERFETTO, '_blank');
  if (!opened)
    throw new PerfettoAbsent(
      `The browser blocked the window for ${PERFETTO}: allow pop-up windows for this page, or save the file and open it there.`,
    );
  const [trace] = await Promise.all([make(), answered(opener, opened)]);
  const { title, fileName, buffer } = trace;
  opened.postMessage({ perfetto: { buffer, title, fileName } }, PERFETTO);
}
