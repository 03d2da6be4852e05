// @vitest-environment happy-dom
import { describe, expect, it } from 'vitest';
import { readTable } from '../../api/declared';
import { payloadOf, tableFor } from '../testing';
import { historyOption, seriesOf } from './history_option';
import { failuresOf, filling, pointsOf, TABLES, type Timeline } from './model';

const MIB = 2 ** 20;

function timelineOf(pending: number[]): Timeline {
  const timeline = tableFor(TABLES.timeline, {
    start_ps: [1e9, 2e9, 4e9],
    used_bytes: [3 * MIB, 5 * MIB, 2 * MIB],
    pending_bytes: pending,
    reserved_bytes: [6 * MIB, 6 * MIB, 8 * MIB],
    action: ['allocated', 'out of memory', 'free for reuse'],
    size_bytes: [3 * MIB, 9 * MIB, 3 * MIB],
    place: ['forward', 'loss', 'forward'],
  });
  return readTable(payloadOf({ tables: { timeline } }), TABLES.timeline);
}

describe('the history', () => {
  it('divides memory in use into the part that waits for a stream and the rest', () => {
    expect(pointsOf(timelineOf([0, MIB, 0])).map(({ used, pending, held }) => [used, pending, held])).toEqual(
      [
        [3 * MIB, 0, 6 * MIB],
        [4 * MIB, MIB, 6 * MIB],
        [2 * MIB, 0, 8 * MIB],
      ],
    );
  });

  it('fills its window: the level before it, and the last one up to its end', () => {
    const points = filling(pointsOf(timelineOf([0, 0, 0])), { startPs: 1.5e9, endPs: 5e9 });
    expect(points.map(({ ps, row }) => [ps, row])).toEqual([
      [1.5e9, 0],
      [2e9, 1],
      [4e9, 2],
      [5e9, 2],
    ]);
    expect(filling([], { startPs: 0, endPs: 1 })).toEqual([]);
  });

  it('marks failed allocations', () => {
    expect(failuresOf(timelineOf([0, 0, 0]))).toEqual([2e9]);
  });

  it('has no series that is always 0', () => {
    const names = (pending: number[]): string[] =>
      seriesOf(pointsOf(timelineOf(pending))).map(({ name }) => name);
    expect(names([0, 0, 0])).toEqual(['used', 'held']);
    expect(names([0, MIB, 0])).toEqual(['used', 'pending', 'held']);
  });

  it('marks the moment and failures whichever series are hidden', () => {
    const timeline = timelineOf([0, 0, 0]);
    const [points, window] = [pointsOf(timeline), { startPs: 0, endPs: 5e9 }];
    for (const hidden of [[], ['used'], ['held']]) {
      const option = historyOption(
        { timeline, points, window, hidden: new Set(hidden), atPs: 1e9 },
        (token) => token,
      );
      const series = option['series'] as { markLine?: { data: { xAxis: number }[] } }[];
      expect(series.flatMap(({ markLine }) => markLine?.data.map(({ xAxis }) => xAxis) ?? [])).toEqual([
        1, 2,
      ]);
    }
  });

  it('is drawn in the unit of its highest level, without hidden series', () => {
    const timeline = timelineOf([0, MIB, 0]);
    const option = historyOption(
      {
        timeline,
        points: pointsOf(timeline),
        window: { startPs: 0, endPs: 5e9 },
        hidden: new Set(['held']),
        atPs: 2e9,
      },
      (token) => token,
    );
    const series = option['series'] as { name: string; data: number[][]; stack?: string }[];
    expect(series.map(({ name, stack }) => [name, stack])).toEqual([
      ['In use', 'in use'],
      ['Waiting for a stream', 'in use'],
    ]);
    expect(series[0]?.data).toEqual([
      [1, 3],
      [2, 4],
      [4, 2],
    ]);
    expect(option['yAxis']).toMatchObject({ name: 'MiB', min: 0 });
  });
});
