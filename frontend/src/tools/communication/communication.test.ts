import { describe, expect, it } from 'vitest';
import { readTable } from '../../api/declared';
import { payloadOf, tableFor } from '../testing';
import {
  amountsOf,
  boxText,
  captionsOf,
  mixesOf,
  PICTURE,
  pictureOf,
  queryOf,
  rowOf,
  TABLES,
  type Box,
  type Picture,
} from './model';

const MS = 1e9;

function drawn(
  ...rows: [lane: string, kind: string, op: string | null, start: number, length: number][]
): Picture {
  const table = tableFor(PICTURE.tables.boxes, {
    lane: rows.map(([lane]) => lane),
    kind: rows.map(([, kind]) => kind),
    op: rows.map(([, , op]) => op),
    start_ps: rows.map(([, , , start]) => start),
    duration_ps: rows.map(([, , , , length]) => length),
  });
  return pictureOf(readTable(payloadOf({ tables: { boxes: table } }), PICTURE.tables.boxes));
}

describe('a picture', () => {
  it('has compute on top, lanes by number, and the exposed time of all at the bottom', () => {
    const { lanes, boxes } = drawn(
      ['Exposed', 'total', null, 0, 5],
      ['Lane 10', 'hidden', 'b', 1, 2],
      ['Lane 2', 'exposed', 'a', 3, 4],
      ['Compute', 'compute', null, 1, 1],
    );
    expect(lanes).toEqual(['Compute', 'Lane 2', 'Lane 10', 'Exposed']);
    expect(boxes.map(({ lane }) => lane)).toEqual([3, 2, 1, 0]);
    expect(boxes[2]).toMatchObject({ startPs: 3, endPs: 7, op: 'a', kind: 'exposed' });
  });

  it('names an operation in its longest box, else after its last one, else not at all', () => {
    const picture = drawn(
      ['Lane 1', 'exposed', 'long', 0, 4],
      ['Lane 1', 'partly', 'long', 4, 20],
      ['Lane 1', 'exposed', 'crowded', 30, 2],
      ['Lane 1', 'exposed', 'free', 36, 2],
      ['Lane 1', 'exposed', 'edge', 60, 2],
      ['Exposed', 'total', null, 0, 99],
    );
    const captions = captionsOf(picture, () => 10, 71);
    expect(captions.map(({ box, isInside }) => [box.op, box.startPs, isInside])).toEqual([
      ['long', 4, true],
      ['free', 36, false],
    ]);
    expect(captionsOf(picture, () => 10, 72).map(({ box }) => box.op)).toEqual(['long', 'free', 'edge']);
  });

  it('names no operation across the compute that follows it', () => {
    const picture = drawn(
      ['Compute', 'exposed', 'short', 0, 4],
      ['Compute', 'compute', null, 10, 30],
      ['Compute', 'exposed', 'free', 40, 4],
    );
    expect(captionsOf(picture, () => 7, 99).map(({ box }) => box.op)).toEqual(['free']);
    expect(captionsOf(picture, () => 6, 99).map(({ box }) => box.op)).toEqual(['short', 'free']);
  });

  it('counts runs of one name apart where they do not touch', () => {
    const picture = drawn(['Lane 1', 'hidden', 'a', 0, 10], ['Lane 1', 'hidden', 'a', 11, 10]);
    expect(captionsOf(picture, () => 10, 99)).toHaveLength(2);
    const touching = drawn(['Lane 1', 'hidden', 'a', 0, 10], ['Lane 1', 'exposed', 'a', 10, 10]);
    expect(captionsOf(touching, () => 10, 99)).toHaveLength(1);
  });
});

describe('the amounts of exposed time', () => {
  const stretches = (...spans: [number, number][]): Picture =>
    drawn(
      ...spans.map(([start, length]): [string, string, null, number, number] => [
        'Exposed',
        'total',
        null,
        start,
        length,
      ]),
    );

  it('are at the middle of each stretch, within the picture', () =>
    expect(amountsOf(stretches([2, 4], [30, 40], [95, 5]), () => 20, 100)).toEqual([
      { text: '40\u00a0ps', atPs: 50 },
      { text: '5\u00a0ps', atPs: 90 },
      { text: '4\u00a0ps', atPs: 10 },
    ]));

  it('leave out the shorter of two that have no room side by side', () => {
    const picture = stretches([40, 6], [50, 8], [70, 2]);
    expect(amountsOf(picture, () => 16, 100).map(({ atPs }) => atPs)).toEqual([54, 71]);
    expect(amountsOf(picture, () => 11, 100).map(({ atPs }) => atPs)).toEqual([54, 43, 71]);
  });
});

describe('the bar of an operation', () => {
  it('is hidden, exposed and waiting time; what may be hidden waits first', () => {
    const table = tableFor(TABLES.ops, {
      total_ps: [100, 50, 10],
      hidden_ps: [60, 0, 0],
      exposed_ps: [40, 50, 10],
      wait_ps: [80, 20, null],
    });
    const mixes = mixesOf(readTable(payloadOf({ tables: { ops: table } }), TABLES.ops));
    expect(mixes).toEqual([
      {
        hidden: 0.6,
        exposed: 0.2,
        waiting: 0.2,
        text: 'Hidden: 60\u00a0ps\nExposed: 20\u00a0ps\nWaiting, exposed: 20\u00a0ps',
      },
      {
        hidden: 0,
        exposed: 0.3,
        waiting: 0.2,
        text: 'Exposed: 30\u00a0ps\nWaiting, exposed: 20\u00a0ps',
      },
      { hidden: 0, exposed: 0.1, waiting: 0, text: 'Exposed: 10\u00a0ps' },
    ]);
  });
});

describe('texts', () => {
  it('say what a box is and how long', () => {
    const box: Box = { lane: 1, kind: 'exposed', op: 'all-reduce.41', startPs: MS, endPs: 3 * MS };
    expect(boxText(box)).toBe('all-reduce.41: exposed\n2.00\u00a0ms, from 1.00\u00a0ms');
    expect(boxText({ ...box, kind: 'total', op: '' })).toBe(
      'Exposed communication\n2.00\u00a0ms, from 1.00\u00a0ms',
    );
  });

  it('find the events of an operation', () => {
    expect(queryOf('all-gather.7')).toBe(String.raw`name~"^%?all-gather(-start|-done)?\.7(\s|$)"`);
    expect(queryOf('copy')).toBe(String.raw`name~"^%?copy(-start|-done)?(\s|$)"`);
    expect(queryOf('psum_invariant.7.clone')).toBe(
      String.raw`name~"^%?psum_invariant(-start|-done)?\.7\.clone(\s|$)"`,
    );
    expect(queryOf('all-to-all #1, #5')).toBe('nccl');
    expect(queryOf('Memcpy HtoD (Pageable -> Device)')).toBe('name:"Memcpy HtoD (Pageable -> Device)"');
    expect(queryOf('say "a\\b"')).toBe(String.raw`name:"say \"a\\b\""`);
  });

  it('read rows from links', () => {
    expect(['3', '0', '-1', 'x', '1.5', undefined].map(rowOf)).toEqual([3, 0, -1, -1, -1, -1]);
  });
});
