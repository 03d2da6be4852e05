import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PERFETTO } from '../../perfetto_link';
import { openInPerfetto, type Opener } from './perfetto';

class FakeWindow {
  closed = false;
  readonly posted: (readonly [unknown, string])[] = [];
  postMessage(message: unknown, target: unknown): void {
    this.posted.push([message, String(target)]);
  }
}

class FakeOpener implements Opener {
  listeners = new Set<(event: MessageEvent) => void>();
  urls: string[] = [];
  constructor(readonly opened: FakeWindow | null) {}
  open(url: string): FakeWindow | null {
    this.urls.push(url);
    return this.opened;
  }
  addEventListener(_type: 'message', listener: (event: MessageEvent) => void): void {
    this.listeners.add(listener);
  }
  removeEventListener(_type: 'message', listener: (event: MessageEvent) => void): void {
    this.listeners.delete(listener);
  }
  say(data: unknown, origin: string = PERFETTO, source: unknown = this.opened): void {
    for (const listener of [...this.listeners]) listener({ data, origin, source } as MessageEvent);
  }
}

const TRACE = { title: 'run', fileName: 'run.trace.json.gz', buffer: new ArrayBuffer(3) };
const make = (): Promise<typeof TRACE> => Promise.resolve(TRACE);

describe('Perfetto', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('gets the trace once it has answered, and only on its own origin', async () => {
    const opened = new FakeWindow();
    const opener = new FakeOpener(opened);
    const done = openInPerfetto(make, opener);
    expect(opener.urls).toEqual([PERFETTO]);
    await vi.advanceTimersByTimeAsync(250);
    expect(opened.posted).toEqual([
      ['PING', PERFETTO],
      ['PING', PERFETTO],
    ]);
    opener.say('PONG', 'https://elsewhere.example');
    opener.say('PONG', PERFETTO, new FakeWindow());
    opener.say('PING');
    await vi.advanceTimersByTimeAsync(100);
    expect(opened.posted.every(([message]) => message === 'PING')).toBe(true);
    opener.say('PONG');
    await done;
    expect(opened.posted.at(-1)).toEqual([{ perfetto: TRACE }, PERFETTO]);
    const n = opened.posted.length;
    await vi.advanceTimersByTimeAsync(1000);
    expect([opened.posted.length, opener.listeners.size]).toEqual([n, 0]);
  });

  it('is waited for no longer than half a minute', async () => {
    const opener = new FakeOpener(new FakeWindow());
    const refused = expect(openInPerfetto(make, opener)).rejects.toThrow('did not answer within 30 s');
    await vi.advanceTimersByTimeAsync(30_000);
    await refused;
    expect(opener.listeners.size).toBe(0);
  });

  it('gets nothing if its window is blocked or closed', async () => {
    const blocked = new FakeOpener(null);
    const unasked = vi.fn(make);
    await expect(openInPerfetto(unasked, blocked)).rejects.toThrow('allow pop-up windows');
    expect(unasked).not.toHaveBeenCalled();
    const closed = new FakeWindow();
    const refused = expect(openInPerfetto(make, new FakeOpener(closed))).rejects.toThrow('was closed');
    closed.closed = true;
    await vi.advanceTimersByTimeAsync(200);
    await refused;
    expect(closed.posted).toEqual([]);
  });
});
