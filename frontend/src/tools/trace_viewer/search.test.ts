// @vitest-environment happy-dom
import { describe, expect, it } from 'vitest';
import { TRACE_VIEWER } from '../../api/tables/trace_viewer';
import type { Payload } from '../../api/types';
import { complete } from '../testing';
import { Search } from './search';
import { number, PAYLOAD, scalars, table, text } from './testing';

describe('search', () => {
  /** 12,500 matches, one per 10 ps, sent 5,000 at a time. */
  const answer = (_question: string, params: Record<string, string>): Promise<Payload> => {
    const total = 12_500;
    const after = params.after_event === undefined ? null : Number(params.after_event) + 1;
    const before = params.before_event === undefined ? null : Number(params.before_event);
    const first = after ?? (before === null ? 0 : Math.max(0, before - 5000));
    const events = Array.from(
      { length: Math.min(Number(params.limit), (before ?? total) - first) },
      (_, i) => first + i,
    );
    const matches = table(
      [
        number('event', events),
        number(
          'track',
          events.map(() => 5),
        ),
        text(
          'name',
          ['x'],
          events.map(() => 0),
        ),
        number(
          'start_ps',
          events.map((event) => event * 10),
        ),
        number(
          'duration_ps',
          events.map(() => 5),
        ),
      ],
      events.length,
    );
    const found = { ...PAYLOAD, tables: { matches }, scalars: scalars({ n_matches: total, n_names: 1 }) };
    return Promise.resolve(complete(TRACE_VIEWER.search, found));
  };
  it('walks all matches, page after page, and around both ends', async () => {
    const seen: number[] = [];
    const search = new Search(
      answer,
      () => undefined,
      ({ event }) => {
        seen.push(event);
      },
    );
    search.set({ text: 'x', hasArguments: false });
    await search.go(1, 95);
    expect([seen.at(-1), search.at.value]).toEqual([10, 10]);
    await search.go(-1, 95);
    await search.goTo(4999);
    await search.go(1, 0);
    await search.go(-1, 0);
    await search.goTo(0);
    await search.go(-1, 0);
    await search.go(1, 0);
    expect(seen).toEqual([10, 9, 4999, 5000, 4999, 0, 12_499, 0]);
    expect(search.highlight).toMatchObject({ text: 'x' });
    search.set({ text: '', hasArguments: false });
    expect(search.highlight).toBeNull();
  });
});
