// @vitest-environment happy-dom
import { h, render } from 'preact';
import { describe, expect, it, vi } from 'vitest';
import { useFramed } from './framed';

const nextFrame = (): Promise<unknown> => new Promise((done) => requestAnimationFrame(done));

function give(apply: (value: number) => void): { give: (value: number) => void; root: HTMLElement } {
  const root = document.createElement('div');
  let later: (value: number) => void = () => {};
  function Hand(): null {
    later = useFramed(apply);
    return null;
  }
  render(h(Hand, {}), root);
  return { give: (value) => later(value), root };
}

describe('what happens between two frames', () => {
  it('is applied once, with the last value, in the next one', async () => {
    const apply = vi.fn();
    const hand = give(apply);
    for (const value of [1, 2, 3]) hand.give(value);
    expect(apply).not.toHaveBeenCalled();
    await nextFrame();
    expect(apply.mock.calls).toEqual([[3]]);
    hand.give(0);
    await nextFrame();
    expect(apply.mock.calls).toEqual([[3], [0]]);
  });

  it('is forgotten where the part of the page is gone', async () => {
    const apply = vi.fn();
    const hand = give(apply);
    await nextFrame();
    await new Promise((done) => setTimeout(done, 50));
    hand.give(1);
    render(null, hand.root);
    await nextFrame();
    expect(apply).not.toHaveBeenCalled();
  });
});
