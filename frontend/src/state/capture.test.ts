// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CaptureStatus } from '../api/capture';
import { setApiBase } from '../api/client';
import {
  capture,
  captureInfo,
  cancelCapture,
  closeCapture,
  followCapture,
  hasNews,
  isCaptureOpen,
  isCapturing,
  openCapture,
  openCaptured,
  startCapture,
  startError,
} from './capture';
import { choose, run } from './selection';

const INFO = { enabled: true, token: 'first', running: null };
const RUNS = { plugin: 'profile', version: '1', runs: [] };
const TARGET = { target: 'a:1', state: 'saved' };

type Answer = [status: number, body: unknown];

/** Answers by "METHOD path", repeating the last of a list; records the requests. */
function serve(answers: Record<string, Answer[]>): { name: string; token: string | null }[] {
  const asked: { name: string; token: string | null }[] = [];
  vi.stubGlobal('fetch', (url: string, init: RequestInit = {}) => {
    const name = `${init.method ?? 'GET'} ${new URL(url).pathname.split('/profile/')[1]}`;
    asked.push({ name, token: new Headers(init.headers).get('X-Tpuprof-Token') });
    const left = answers[name] ?? [[404, {}]];
    const [status, body] = (left.length > 1 ? left.shift() : left[0]) as Answer;
    return Promise.resolve(new Response(JSON.stringify(body), { status }));
  });
  return asked;
}

const state = (name: CaptureStatus['state'], change: object = {}): Answer => [
  200,
  {
    capture: 'c',
    state: name,
    run: '',
    elapsed_ms: 1,
    message: '',
    remedy: '',
    targets: [TARGET],
    ...change,
  },
];
const DONE = state('done', { run: 'new' });

describe('a capture', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    setApiBase(new URL('http://host/data/plugin/profile/index.js'));
    captureInfo.value = INFO as never;
    capture.value = null;
    hasNews.value = false;
    choose({ run: 'old', tool: 'trace_viewer', hosts: ['a'], params: { x: '1' } });
    openCapture();
  });
  afterEach(() => {
    closeCapture();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it('opens its run by itself and closes the dialog', async () => {
    const asked = serve({
      'POST capture': [[202, { capture: 'c' }]],
      'GET capture/status': [state('running'), state('running'), DONE],
      'GET runs': [[200, RUNS]],
    });
    expect(await startCapture({ options: {} })).toBe(true);
    expect(isCapturing.value).toBe(true);
    await vi.advanceTimersByTimeAsync(1000);
    expect(run.value).toBe('new');
    expect(isCaptureOpen.value).toBe(false);
    expect(hasNews.value).toBe(false);
    expect(asked.filter(({ name }) => name === 'GET capture/status')).toHaveLength(3);
    expect(asked.map(({ name }) => name)).toContain('GET runs');
  });

  it('of which a target failed opens its run and keeps the dialog, which says so', async () => {
    serve({
      'POST capture': [[202, { capture: 'c' }]],
      'GET capture/status': [
        state('done', { run: 'new', targets: [TARGET, { ...TARGET, state: 'failed' }] }),
      ],
      'GET runs': [[200, RUNS]],
    });
    await startCapture({ options: {} });
    await vi.advanceTimersByTimeAsync(1000);
    expect(run.value).toBe('new');
    expect(isCaptureOpen.value).toBe(true);
    expect(capture.value?.state).toBe('done');
  });

  it('leaves a reader where they went meanwhile, and offers its run', async () => {
    serve({
      'POST capture': [[202, { capture: 'c' }]],
      'GET capture/status': [state('running'), state('running'), DONE],
      'GET runs': [[200, RUNS]],
    });
    await startCapture({ options: {} });
    closeCapture();
    choose({ run: 'elsewhere' });
    await vi.advanceTimersByTimeAsync(1000);
    expect(run.value).toBe('elsewhere');
    expect(hasNews.value).toBe(true);
    openCaptured();
    expect(run.value).toBe('new');
    expect(hasNews.value).toBe(false);
  });

  it('opens its run for a reader who hid the dialog and stayed', async () => {
    serve({
      'POST capture': [[202, { capture: 'c' }]],
      'GET capture/status': [state('running'), DONE],
      'GET runs': [[200, RUNS]],
    });
    await startCapture({ options: {} });
    closeCapture();
    await vi.advanceTimersByTimeAsync(1000);
    expect(run.value).toBe('new');
    expect(hasNews.value).toBe(false);
  });

  it('of another page is shown, and offered when it is done, but not opened', async () => {
    serve({ 'GET capture/status': [state('running'), DONE], 'GET runs': [[200, RUNS]] });
    closeCapture();
    void followCapture('theirs');
    await vi.advanceTimersByTimeAsync(100);
    expect(isCapturing.value).toBe(true);
    await vi.advanceTimersByTimeAsync(1000);
    expect(run.value).toBe('old');
    expect(hasNews.value).toBe(true);
  });

  it('is started with the new token after TensorBoard was restarted, once', async () => {
    const refused: Answer = [403, { error: { kind: 'forbidden', message: 'No.', remedy: '' } }];
    const asked = serve({
      'POST capture': [refused, [202, { capture: 'c' }]],
      'GET capture': [[200, { ...INFO, token: 'second' }]],
      'GET capture/status': [state('cancelled')],
    });
    expect(await startCapture({ options: {} })).toBe(true);
    expect(asked.filter(({ name }) => name === 'POST capture').map(({ token }) => token)).toEqual([
      'first',
      'second',
    ]);
  });

  it('that is refused says why, and where', async () => {
    serve({
      'POST capture': [
        [
          400,
          { error: { kind: 'bad_parameter', message: 'No port.', remedy: 'Add one.', parameter: 'targets' } },
        ],
      ],
    });
    expect(await startCapture({ options: {} })).toBe(false);
    expect(startError.value).toMatchObject({ message: 'No port.', parameter: 'targets', status: 400 });
    expect(capture.value).toBeNull();
    openCapture();
    expect(startError.value).toBeNull();
  });

  it('that the server has forgotten has failed', async () => {
    serve({
      'POST capture': [[202, { capture: 'c' }]],
      'GET capture/status': [[404, { error: { kind: 'capture_not_found', message: 'Gone.', remedy: '' } }]],
    });
    await startCapture({ options: {} });
    await vi.advanceTimersByTimeAsync(1000);
    expect(capture.value).toMatchObject({ state: 'failed', message: 'Gone.' });
    expect(isCapturing.value).toBe(false);
  });

  it('is polled again while the server is silent', async () => {
    serve({
      'POST capture': [[202, { capture: 'c' }]],
      'GET capture/status': [[502, {}], [502, {}], state('running'), state('failed')],
    });
    await startCapture({ options: {} });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(capture.value?.state).toBe('failed');
  });

  it('is cancelled on the server', async () => {
    const asked = serve({
      'POST capture': [[202, { capture: 'c' }]],
      'GET capture/status': [state('running'), state('cancelled')],
      'POST capture/cancel': [[202, {}]],
    });
    await startCapture({ options: {} });
    await cancelCapture();
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked.find(({ name }) => name === 'POST capture/cancel')?.token).toBe('first');
    expect(capture.value?.state).toBe('cancelled');
    expect(hasNews.value).toBe(false);
  });
});
