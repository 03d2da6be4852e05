// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Rest } from './rest';

describe('rest', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('comes once, so long after the last of many', () => {
    const calls: number[] = [];
    const rest = new Rest(100, () => {
      calls.push(performance.now());
    });
    const from = performance.now();
    for (let i = 0; i < 20; i++) {
      rest.note();
      vi.advanceTimersByTime(16);
    }
    expect(calls).toEqual([]);
    vi.advanceTimersByTime(200);
    expect(calls).toHaveLength(1);
    expect((calls[0] as number) - from).toBeGreaterThanOrEqual(19 * 16 + 99);
    expect((calls[0] as number) - from).toBeLessThanOrEqual(19 * 16 + 102);
    rest.note();
    vi.advanceTimersByTime(150);
    expect(calls).toHaveLength(2);
  });

  it('never comes once it is cancelled', () => {
    const onRest = vi.fn();
    const rest = new Rest(100, onRest);
    rest.note();
    rest.cancel();
    vi.advanceTimersByTime(500);
    expect(onRest).not.toHaveBeenCalled();
  });
});
