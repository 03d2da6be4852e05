import { describe, expect, it } from 'vitest';
import { parseView, PLAIN_VIEW, viewChange } from '../widgets/table/model';
import { changeOf, paramsOf } from './generic_model';

/** What the hook joins: the link of one table among several. */
describe('the views of two tables in one link', () => {
  it('do not mix', () => {
    const initial = { ...PLAIN_VIEW, hidden: new Set(['id']) };
    const hosts = { ...initial, sort: { column: 'stall_ps', descending: true }, query: 'w-1' };
    const slices = { ...initial, filters: { source: '3' } };
    const link = {
      ...changeOf('hosts', viewChange(initial, hosts, initial)),
      ...changeOf('slices', viewChange(initial, slices, initial)),
    };
    const params = Object.fromEntries(
      Object.entries(link).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
    expect(params).toEqual({ 'hosts.sort': '-stall_ps', 'hosts.q': 'w-1', 'slices.f.source': '3' });
    expect(parseView(paramsOf('hosts', params), initial)).toEqual(hosts);
    expect(parseView(paramsOf('slices', params), initial)).toEqual(slices);
    expect(parseView(paramsOf('cores', params), initial)).toEqual(initial);
  });
});
