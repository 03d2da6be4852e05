// @vitest-environment happy-dom
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { setApiBase } from '../api/client';
import { captureInfo } from './capture';
import {
  changeContinuous,
  changing,
  continuousError,
  continuousOutcomes,
  continuousTargets,
  forgetOutcomes,
  loadContinuous,
} from './continuous';

const ROW = { target: 'a:1', started_unix_ms: 5 };
const FAILED = { target: 'b:2', is_ok: false, message: 'No.', remedy: 'Do.' };

function serve(status: number, body: unknown): { method: string; body: unknown }[] {
  const asked: { method: string; body: unknown }[] = [];
  vi.stubGlobal('fetch', (_url: string, init: RequestInit = {}) => {
    asked.push({ method: init.method ?? 'GET', body: init.body ? JSON.parse(init.body as string) : null });
    return Promise.resolve(new Response(JSON.stringify(body), { status }));
  });
  return asked;
}

describe('continuous profiling', () => {
  beforeEach(() => {
    setApiBase(new URL('http://host/data/plugin/profile/index.js'));
    captureInfo.value = { enabled: true, token: 't', running: null } as never;
    continuousTargets.value = [];
    forgetOutcomes();
  });

  it('keeps what runs and what failed', async () => {
    const asked = serve(200, { targets: [FAILED], running: [ROW] });
    const change = changeContinuous({ action: 'start', targets: 'a:1,b:2', options: {} });
    expect(changing.value).toBe('start');
    void changeContinuous({ action: 'stop', options: {} }); // one at a time
    await change;
    expect(changing.value).toBeNull();
    expect(asked).toEqual([{ method: 'POST', body: { action: 'start', targets: 'a:1,b:2', options: {} } }]);
    expect(continuousTargets.value).toEqual([ROW]);
    expect(continuousOutcomes.value).toEqual([FAILED]);
  });

  it('keeps a refusal until the next change', async () => {
    serve(400, { error: { kind: 'bad_parameter', message: 'Bad.', remedy: '', parameter: 'targets' } });
    await changeContinuous({ action: 'start', options: {} });
    expect(continuousError.value?.parameter).toBe('targets');
    expect(changing.value).toBeNull();
    serve(200, { targets: [], running: [] });
    await changeContinuous({ action: 'stop', options: {} });
    expect(continuousError.value).toBeNull();
  });

  it('learns what runs when the dialog opens', async () => {
    serve(200, { running: [ROW] });
    await loadContinuous();
    expect(continuousTargets.value).toEqual([ROW]);
    serve(500, {});
    await loadContinuous();
    expect(continuousError.value).not.toBeNull();
    expect(continuousTargets.value).toEqual([ROW]);
  });
});
