import { describe, expect, it } from 'vitest';
import { dragged, moved, widthFor, windowParams } from './time_window';

const window = { startPs: 1_000_000, endPs: 3_000_000 };

describe('the window', () => {
  it('is the dragged part in either direction, and none for a click', () => {
    expect(dragged(window, 0.25, 0.75)).toEqual({ startPs: 1_500_000, endPs: 2_500_000 });
    expect(dragged(window, 0.75, 0.25)).toEqual({ startPs: 1_500_000, endPs: 2_500_000 });
    expect(dragged(window, 0.5, 1.7)).toEqual({ startPs: 2_000_000, endPs: 3_000_000 });
    expect(dragged(window, 0.5, 0.501)).toBeNull();
  });

  it('scales about its middle and stays within the trace', () => {
    expect(moved(window, 0.5, 0, 4_000_000)).toEqual({ startPs: 1_500_000, endPs: 2_500_000 });
    expect(moved(window, 4, 0, 4_000_000)).toEqual({ startPs: 0, endPs: 4_000_000 });
    expect(moved(window, 1, 1, 4_000_000)).toEqual({ startPs: 2_000_000, endPs: 4_000_000 });
    expect(moved(window, 1, -1, 4_000_000)).toEqual({ startPs: 0, endPs: 2_000_000 });
  });

  it('takes no place in the link where it is the whole trace', () => {
    expect(windowParams(null, 5)).toEqual({ start_ps: undefined, end_ps: undefined });
    expect(windowParams(window, 3_000_000)).toEqual({ start_ps: '1000000', end_ps: '3000000' });
  });

  it('is requested in few widths', () => {
    expect([600, 1280, 1920, 9000].map(widthFor)).toEqual(['800', '1600', '2000', '4000']);
  });
});
