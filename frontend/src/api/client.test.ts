import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError, dataUrl, fetchPayload, fetchRuns, fetchTools, forgetAnswers, setApiBase } from './client';

const query = { tool: 'op', run: 'a/b c', hosts: ['w,0', 'w1'], params: { idle: 'false' } };

function answer(body: unknown, status = 200): void {
  vi.stubGlobal(
    'fetch',
    vi.fn(() =>
      Promise.resolve(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status })),
    ),
  );
}

describe('client', () => {
  beforeEach(() => {
    setApiBase(new URL('http://host/prefix/data/plugin/profile/index.js'));
    forgetAnswers();
  });
  afterEach(() => vi.unstubAllGlobals());

  it('sends requests next to its own module, whatever the prefix', () => {
    const url = new URL(dataUrl(query, { format: 'csv', table: 'ops' }));
    expect(url.pathname).toBe('/prefix/data/plugin/profile/data/op');
    expect(Object.fromEntries(url.searchParams)).toEqual({
      run: 'a/b c',
      hosts: 'w,0,w1',
      idle: 'false',
      format: 'csv',
      table: 'ops',
    });
  });

  it('remembers answers by URL, but not the runs', async () => {
    answer({ tool: 'op' });
    await fetchPayload(query);
    await fetchPayload(query);
    expect(fetch).toHaveBeenCalledTimes(1);
    await fetchRuns();
    await fetchRuns();
    expect(fetch).toHaveBeenCalledTimes(3);
  });

  it('turns the errors of the server into ApiError', async () => {
    answer({ error: { kind: 'run_not_found', message: 'No run x.', remedy: 'Choose another.' } }, 404);
    await expect(fetchTools('x')).rejects.toEqual(
      new ApiError('run_not_found', 'No run x.', 'Choose another.', 404),
    );
  });

  it("reports another server's answer, no answer, and nonsense", async () => {
    answer('<html>Bad gateway</html>', 502);
    await expect(fetchTools('x')).rejects.toMatchObject({ kind: 'http', status: 502 });
    answer('<html>OK</html>');
    await expect(fetchTools('x')).rejects.toMatchObject({ kind: 'bad_answer' });
    vi.stubGlobal(
      'fetch',
      vi.fn(() => Promise.reject(new TypeError('failed'))),
    );
    await expect(fetchTools('x')).rejects.toMatchObject({ kind: 'network', status: 0 });
  });
});
