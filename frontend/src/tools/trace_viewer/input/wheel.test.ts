import { describe, expect, it } from 'vitest';
import { type Turn, Wheel } from './wheel';

describe('wheel', () => {
  const turn = (more: Partial<Turn>): Turn => ({
    deltaX: 0,
    deltaY: 0,
    deltaMode: 0,
    ctrlKey: false,
    metaKey: false,
    shiftKey: false,
    altKey: false,
    ...more,
  });
  it('zooms by notches of a mouse and moves with two fingers', () => {
    expect(new Wheel().turn(turn({ deltaY: -120, wheelDeltaY: 120 }), 0)).toMatchObject({ act: 'zoom' });
    expect(new Wheel().turn(turn({ deltaY: 7, wheelDeltaY: -21 }), 0)).toEqual({ act: 'move', x: 0, y: 7 });
    expect(new Wheel().turn(turn({ deltaX: 9, deltaY: 2, wheelDeltaY: -6 }), 0)).toEqual({
      act: 'move',
      x: 9,
      y: 0,
    });
    expect(new Wheel().turn(turn({ deltaY: 3, deltaMode: 1 }), 0)).toMatchObject({ act: 'zoom' });
  });
  it('keeps the meaning of a stream, and takes keys at their word', () => {
    const wheel = new Wheel();
    wheel.turn(turn({ deltaY: 4, wheelDeltaY: -12 }), 0);
    expect(wheel.turn(turn({ deltaY: 100, wheelDeltaY: -120 }), 100)).toMatchObject({ act: 'move' });
    expect(wheel.turn(turn({ deltaY: 100, wheelDeltaY: -120 }), 900)).toMatchObject({ act: 'zoom' });
    expect(new Wheel().turn(turn({ deltaY: -5, wheelDeltaY: 15, ctrlKey: true }), 0)).toEqual({
      act: 'zoom',
      factor: Math.exp(-0.05),
    });
    expect(new Wheel().turn(turn({ deltaY: 120, wheelDeltaY: -120, shiftKey: true }), 0)).toEqual({
      act: 'move',
      x: 120,
      y: 0,
    });
    expect(new Wheel().turn(turn({ deltaY: 120, wheelDeltaY: -120, altKey: true }), 0)).toEqual({
      act: 'move',
      x: 0,
      y: 120,
    });
  });
});
