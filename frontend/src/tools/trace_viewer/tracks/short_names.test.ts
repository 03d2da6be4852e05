import { describe, expect, it } from 'vitest';
import { shortName, shortNames } from './short_names';

/** A character is a pixel. */
const widthOf = (text: string): number => text.length;

describe('names of tracks', () => {
  it('stay whole where they fit, and keep both ends where they do not', () => {
    expect(shortName('python', 6, widthOf)).toBe('python');
    expect(shortName('tf_Compute/-1548252502023814', 15, widthOf)).toBe('tf_Comp…2023814');
    expect(shortName('a long name', 1, widthOf)).toBe('…');
  });
  it.each([12, 16, 20, 28])('of %i pixels differ where the names do', (roomPx) => {
    const names = [7, 13, 14, 20].map((n) => `Framework Ops - from Stream #${String(n)}(Compute, MemcpyD2D)`);
    const texts = shortNames([...names, names[0] as string, 'steps'], roomPx, widthOf);
    expect(texts.size).toBe(5);
    expect(new Set(texts.values()).size).toBe(5);
    for (const text of texts.values()) expect(text.length).toBeLessThanOrEqual(roomPx);
    expect(texts.get(names[1] as string)).toContain('13');
  });
  it('differ at their ends, at their beginnings and in between', () => {
    const names = ['replica_4/bert_span_labeler/layer_1', 'replica_4/bert_span_labeler/layer_2'];
    expect([...shortNames(names, 13, widthOf).values()]).toEqual(['replic…ayer_1', 'replic…ayer_2']);
    const groups = ['thread 25286 of the pool (python3)', 'thread 25287 of the pool (python3)'];
    expect([...shortNames(groups, 13, widthOf).values()]).toEqual(['thr…86 of th…', 'thr…87 of th…']);
  });
});
