import { describe, expect, it } from 'vitest';
import type { FlowNeighbour } from '../data/details_model';
import { foldedRuns } from '../details/chain';
import { kindsText, nearestEnd, nextAlong, parseKinds, type ChainLink } from './flows';

const NONE: ReadonlySet<string> = new Set();

const link = (
  event: number,
  side: ChainLink['side'],
  kind: string,
  distance: number,
  track = 0,
): ChainLink => ({
  event,
  track,
  name: `e${String(event)}`,
  startPs: event * 10,
  durationPs: 5,
  side,
  kind,
  distance,
  gapPs: null,
});

describe('the way along arrows', () => {
  const flow = (event: number, direction: 'in' | 'out', kind: string): FlowNeighbour => ({
    event,
    track: 0,
    name: '',
    startPs: event,
    durationPs: 1,
    direction,
    kind,
  });
  const flows = [flow(1, 'in', 'a'), flow(5, 'in', 'b'), flow(7, 'out', 'a'), flow(9, 'out', 'b')];
  it('goes to the latest cause and the first effect of the kinds that are shown', () => {
    expect(nextAlong(flows, 'cause', NONE)?.event).toBe(5);
    expect(nextAlong(flows, 'effect', NONE)?.event).toBe(7);
    expect(nextAlong(flows, 'cause', new Set(['b']))?.event).toBe(1);
    expect(nextAlong(flows, 'effect', new Set(['a', 'b']))).toBeNull();
  });
  it('passes enclosing events to the nearest end of an arrow', () => {
    const chain = {
      isCut: false,
      links: [
        link(1, 'cause', 'encloses', 3),
        link(2, 'cause', 'PjRt', 2),
        link(3, 'cause', 'encloses', 1),
        link(4, 'event', '', 0),
        link(5, 'effect', 'encloses', 1),
        link(7, 'effect', 'launch', 2),
        link(6, 'effect', 'launch', 2),
      ],
    };
    expect(nearestEnd(chain, 'cause', NONE)?.event).toBe(2);
    expect(nearestEnd(chain, 'effect', NONE)?.event).toBe(6);
    expect(nearestEnd(chain, 'cause', new Set(['PjRt']))).toBeNull();
  });
});

describe('a chain in the panel', () => {
  it('folds the middle of a deep stack of calls on one track', () => {
    const deep = [1, 2, 3, 4, 5].map((event) => link(event, 'cause', 'encloses', 7 - event));
    const links = [...deep, link(6, 'cause', 'encloses', 2, 9), link(7, 'cause', 'launch', 1, 9)];
    expect(foldedRuns(links).map((part) => [part.links.map(({ event }) => event), part.isFolded])).toEqual([
      [[1], false],
      [[2, 3, 4], true],
      [[5], false],
      [[6], false],
      [[7], false],
    ]);
    expect(foldedRuns(deep.slice(0, 3))).toEqual([{ links: deep.slice(0, 3), isFolded: false }]);
  });
});

describe('hidden kinds in a link', () => {
  it('come back as they went', () => {
    const hidden = new Set(['thread pool', 'a,b']);
    expect(kindsText(hidden)).toBe('a%2Cb,thread%20pool');
    expect(parseKinds(kindsText(hidden))).toEqual(hidden);
    expect(parseKinds('%E0%A4%A,x')).toEqual(new Set(['x']));
    expect(parseKinds(undefined).size).toBe(0);
  });
});
