import { describe, expect, it } from 'vitest';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import { complete, payloadOf } from '../../testing';
import { pickedEvent, type Picked } from '../drawing/picking';
import {
  decodePlaces,
  extentOf,
  MOST_EVENTS,
  parseSeveral,
  Several,
  severalParams,
  severalText,
  toggled,
} from './several';
import { number, table, text } from '../testing';

const event = (id: number, startPs = 10 * id, durationPs = 5): Picked =>
  pickedEvent({ event: id, track: id % 2, name: `e${String(id)}`, startPs, durationPs }, 0);
const [a, b, c] = [event(1), event(2, 100, 50), event(3, 40, 7)];
const many = Array.from({ length: MOST_EVENTS }, (_, i) => event(i + 10));

describe('events selected together', () => {
  it('begin with the event that is selected already', () => {
    expect(toggled([], a, b)).toEqual({ events: [a, b], selected: b, isFull: false });
    expect(toggled([], null, b).events).toEqual([b]);
    expect(toggled([], b, b).events).toEqual([b]);
  });
  it('grow by one, and lose what is clicked again', () => {
    expect(toggled([a, b], b, c)).toEqual({ events: [a, b, c], selected: c, isFull: false });
    expect(toggled([a, b, c], c, b)).toEqual({ events: [a, c], selected: c, isFull: false });
    expect(toggled([a, b, c], c, c)).toEqual({ events: [a, b], selected: b, isFull: false });
    expect(toggled([a], a, a)).toEqual({ events: [], selected: null, isFull: false });
  });
  it('are bounded: one fewer still takes one', () => {
    expect(toggled(many.slice(1), null, a)).toMatchObject({ selected: a, isFull: false });
    expect(toggled(many, b, a)).toEqual({ events: many, selected: b, isFull: true });
  });
  it('reach from the first start to the last end', () => {
    expect(extentOf([a, b, c])).toEqual({ startPs: 10, endPs: 150 });
  });
});

describe('the URL of events selected together', () => {
  it('comes back as it went', () => {
    expect(severalText([c, a, b])).toBe('3.1.2');
    expect(parseSeveral('3.1.2')).toEqual([3, 1, 2]);
    expect(severalParams([3, 1, 2])).toEqual({ events: '3,1,2' });
  });
  it('may contain anything; only ids count', () => {
    expect(parseSeveral('3.x.-1.3..1e3.99999999999999999.7')).toEqual([3, 7]);
    expect(parseSeveral(undefined)).toEqual([]);
    expect(parseSeveral(Array.from({ length: 300 }, (_, i) => i).join('.'))).toHaveLength(MOST_EVENTS);
  });
  it('is completed by the places that the server states, in its own order', () => {
    const places = table(
      [
        number('event', [1, 2, 3]),
        number('track', [1, 0, 1]),
        text('name', ['e1', 'e2', 'e3'], [0, 1, 2]),
        number('start_ps', [10, 100, 40]),
        number('duration_ps', [5, 50, 7]),
        number('depth', [0, 4, 2]),
      ],
      3,
    );
    const payload = complete(TRACE_VIEWER.places, payloadOf({ tables: { places } }));
    expect(decodePlaces(payload, [3, 9, 2])).toEqual([
      { ...c, depth: 2 },
      { ...b, depth: 4 },
    ]);
  });
});

describe('several', () => {
  it('note that there was no room until the next change', () => {
    const several = new Several();
    several.set(many);
    expect(several.toggle(a, b)).toBe(b);
    expect([several.isFull.value, several.events.value.length]).toEqual([true, MOST_EVENTS]);
    several.toggle(many[0] as Picked, b);
    expect([several.isFull.value, several.events.value.length]).toEqual([false, MOST_EVENTS - 1]);
    expect([several.clear(), several.clear()]).toEqual([true, false]);
  });
  it('move with the clock and go with their tracks', () => {
    const several = new Several();
    several.set([a, b, c]);
    several.shift(1000);
    expect(several.events.value.map(({ startPs }) => startPs)).toEqual([1010, 1100, 1040]);
    several.keepOn([{ id: 1 }, { id: 5 }]);
    expect(severalText(several.events.value)).toBe('1.3');
  });
});
