// @vitest-environment happy-dom
import { describe, expect, it } from 'vitest';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import type { Payload } from '../../../api/types';
import { answerOf, scalarsOf } from '../../testing';
import { queryOfLink, quoted, Search } from './search';
import { WHOLE } from '../testing';

/** 12,500 matches, one per 10 ps. */
const TOTAL = 12_500;

function answerTo(question: string, params: Record<string, string>): Payload {
  if (question === 'hits')
    return answerOf(
      TRACE_VIEWER.hits,
      { hits: { box: [3], track: [5], depth: [1], n: [2] } },
      scalarsOf({ n_boxes: 5, pixel_ps: 2, n_in_window: 2 }),
    );
  const first =
    params.from_ps === undefined
      ? Number(params.offset)
      : Math.min(Math.ceil(Number(params.from_ps) / 10), TOTAL - 1);
  const events = Array.from({ length: Math.min(Number(params.limit), TOTAL - first) }, (_, i) => first + i);
  const slices = {
    event: events,
    track: events.map(() => 5),
    name: events.map(() => 'x'),
    start_ps: events.map((event) => event * 10),
    duration_ps: events.map(() => 5),
  };
  return answerOf(TRACE_VIEWER.slices, { slices }, scalarsOf({ n_matches: TOTAL, first, n_recorded: TOTAL }));
}

function searching(): { search: Search; seen: number[]; asked: [string, Record<string, string>][] } {
  const seen: number[] = [];
  const asked: [string, Record<string, string>][] = [];
  const search = new Search(
    (question, params) => {
      asked.push([question, params]);
      return Promise.resolve(answerTo(question, params));
    },
    () => undefined,
    ({ event }) => {
      seen.push(event);
    },
  );
  return { search, seen, asked };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

describe('search', () => {
  it('walks all matches from the view on, wherever they are, and around both ends', async () => {
    const { search, seen } = searching();
    search.set('x');
    await search.go(1, 95);
    expect([seen.at(-1), search.at.value]).toEqual([10, 10]);
    await search.go(-1, 95);
    await search.goTo(4999);
    await search.go(1, 0);
    await search.goTo(0);
    await search.go(-1, 0);
    await search.go(1, 0);
    expect(seen).toEqual([10, 9, 4999, 5000, 0, 12_499, 0]);
  });
  it('begins before the view if it goes back, and with the first if nothing comes later', async () => {
    const back = searching();
    back.search.set('x');
    await back.search.go(-1, 95);
    const beyond = searching();
    beyond.search.set('x');
    await beyond.search.go(1, 1e9);
    await beyond.search.go(-1, 1e9);
    expect([back.seen, beyond.seen]).toEqual([[9], [0, 12_499]]);
  });
  it('asks for the hits of each window once, and keeps the last ones until others arrive', async () => {
    const { search, asked } = searching();
    expect(search.hitsOf(WHOLE)).toBeNull();
    search.set('x');
    await settled();
    expect(search.hitsOf(WHOLE)).toBeNull();
    await settled();
    const found = search.hitsOf(WHOLE);
    expect([...(found?.isLit ?? [])]).toEqual([0, 0, 0, 1, 0]);
    expect(search.hitsOf({ ...WHOLE })).toBe(found);
    const hits = asked.filter(([question]) => question === 'hits');
    expect(hits[0]).toEqual(['hits', { width_px: '500', query: 'x', of: 'auto' }]);
    expect(hits).toHaveLength(2);
    search.set('');
    expect(search.hitsOf(WHOLE)).toBeNull();
  });
  it('counts derived matches only when asked to', async () => {
    const { search, asked } = searching();
    search.set('x');
    search.count('derived');
    await settled();
    expect(asked.map(([, { of }]) => of)).toEqual(['derived']);
  });
  it('writes texts as values, and reads links from before the language', () => {
    expect(quoted('a "b" \\c')).toBe('"a \\"b\\" \\\\c"');
    expect(queryOfLink('fusion', false)).toBe('fusion');
    expect(queryOfLink('[1, 2]', true)).toBe('any:"[1, 2]"');
  });
});
