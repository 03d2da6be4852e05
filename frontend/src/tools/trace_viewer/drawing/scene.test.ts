import { describe, expect, it } from 'vitest';
import { depthOf } from './picking';
import { arrowsOf, sceneOf } from './scene';
import { laidOut, WHOLE } from '../testing';

describe('the scene apart from boxes', () => {
  const layout = laidOut();
  it('dims what a search did not find and marks where it found', () => {
    const scene = sceneOf(WHOLE, layout, {
      window: WHOLE,
      isLit: Uint8Array.from([0, 1, 0, 0, 1]),
      stretches: Float64Array.from([500, 550]),
      nInWindow: 4,
    });
    expect([...(scene.isDim ?? [])]).toEqual([1, 0, 1, 1, 0]);
    expect(scene.hits.map(({ startPs, endPs }) => [startPs, endPs])).toEqual([
      [500, 550],
      [400, 490],
    ]);
    expect(scene.hits[0]).toMatchObject({ y: 89, height: 4 });
    expect([...scene.stretches]).toEqual([500, 550]);
    expect(sceneOf(WHOLE, layout, null).isDim).toBeNull();
  });
  it('draws an arrow from the end of the cause to the beginning of the effect', () => {
    const me = {
      event: 13,
      track: 5,
      name: 'b',
      startPs: 500,
      durationPs: 50,
      nMerged: 1,
      longestPs: 50,
      depth: 0,
    };
    const launch = {
      event: 11,
      track: 5,
      name: 'c',
      startPs: 120,
      durationPs: 80,
      direction: 'in' as const,
      kind: 'launch',
    };
    expect(depthOf(WHOLE, 11, 5, 120)).toBe(1);
    expect(arrowsOf(WHOLE, layout, me, [launch])).toEqual([
      {
        fromPs: 200,
        fromY: 73 + 8.5,
        toPs: 500,
        toY: 55 + 8.5,
        isOwn: true,
        kind: 'launch',
        from: { event: 11, track: 5, name: 'c' },
        to: { event: 13, track: 5, name: 'b' },
      },
    ]);
    expect(arrowsOf(WHOLE, layout, me, [{ ...launch, track: 77 }])).toEqual([]);
  });
});

describe('the row of steps', () => {
  const step = (host: string, number: number | null, name: string, startPs: number) => ({
    host,
    number,
    name,
    startPs,
    durationPs: 12_100_000_000,
  });
  it('has the steps of one host, in time order, by number or name', () => {
    const steps = [
      step('a', 37, 'train 37', 90),
      step('a', null, 'warm-up', 5),
      step('b', 37, 'train 37', 91),
    ];
    expect(
      sceneOf({ ...WHOLE, steps }, laidOut(), null).stepRow.map(({ label, note, startPs }) => [
        label,
        note.replace('\u00a0', ' '),
        startPs,
      ]),
    ).toEqual([
      ['warm-up', '12.1 ms', 5],
      ['37', '12.1 ms', 90],
    ]);
  });
});
