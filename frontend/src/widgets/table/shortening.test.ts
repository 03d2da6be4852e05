import { describe, expect, it } from 'vitest';
import { shortener } from './shortening';

const layers = Array.from(
  { length: 24 },
  (_, i) => `replica_4/model/encoder/layer_${i}/self_attention/dropout/RandomUniform`,
);

describe('a shortened path', () => {
  it('keeps its end and the segments that few names have', () => {
    const shorten = shortener(layers);
    expect(shorten(layers[17] as string, 32)).toBe('…/layer_17/…/RandomUniform');
  });
  it('keeps the rarest segment and part of a long end rather than segments that many names have', () => {
    const names = [2, 3, 4].map(
      (i) => `while/body/_1/gradient_tape/resnet50/res${i}b_branch2a/Conv2DBackpropInput`,
    );
    const others = names.map((name) => name.replace('_1/gradient_tape/', ''));
    const shorten = shortener([...names, ...others]);
    const short = names.map((name) => shorten(name, 33));
    expect(new Set(short).size).toBe(3);
    short.forEach((text, i) => expect(text).toContain(`res${i + 2}b_branch2a/Conv`));
  });
  it('differs from the others, though they share all but one segment', () => {
    const names = layers.flatMap((name) => [name, name.replace('replica_4', 'replica_6')]);
    const shorten = shortener(names);
    expect(new Set(names.map((name) => shorten(name, 40))).size).toBe(48);
  });
  it('is as long as allowed at most', () => {
    const shorten = shortener(layers);
    for (let nChars = 6; nChars < 70; nChars++)
      for (const name of layers) expect(shorten(name, nChars).length).toBeLessThanOrEqual(nChars);
  });
  it('of stages keeps their separator', () =>
    expect(
      shortener(['Iterator::Root::Prefetch::ParallelMapV2'])('Iterator::Root::Prefetch::ParallelMapV2', 30),
    ).toBe('…::Prefetch::ParallelMapV2'));
});

describe('a shortened stack of calls', () => {
  const stack = (line: number, end = 440): string =>
    `/env/nn/conv.py(${end}): conv;/env/nn/module.py(9): call;` +
    `/app/net.py(${line}): forward;/app/run.py(1): main`;
  const shorten = shortener([stack(7), stack(31), stack(204)]);
  it('keeps the innermost call and the one that differs, without folders', () => {
    expect(shorten(stack(31), 60)).toBe('… › net.py(31): forward › … › conv.py(440): conv');
    expect(shorten(stack(204), 20)).toBe('conv.py(440): conv');
  });
  it('that fits is not changed', () => expect(shorten(stack(7), 200)).toBe(stack(7)));
});

describe('a shortened name', () => {
  it('has its middle left out', () => expect(shortener([])('abcdefghijklmnop', 9)).toBe('abcd…mnop'));
  it('is cut where the names of the column differ', () => {
    const names = ['Eigen product of half and half, left', 'Eigen product of half and half, right'];
    const shorten = shortener(names);
    expect(new Set(names.map((name) => shorten(name, 12))).size).toBe(2);
    const others = ['left side of a long kernel name', 'right side of a long kernel name'];
    expect(new Set(others.map((name) => shortener(others)(name, 12))).size).toBe(2);
  });
  it('that fits stays as it is', () => expect(shortener([])('a/b/c', 5)).toBe('a/b/c'));
});
