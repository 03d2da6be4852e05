import { describe, expect, it } from 'vitest';
import { RULER_PX } from '../../../canvas/overlay';
import {
  contentY,
  layoutTracks,
  maxPinScroll,
  trackAt,
  PAD_PX,
  PITCH_PX,
  placeRows,
  rowTop,
  SECTION_PX,
  tracksWithin,
} from './layout';
import { FACTS, laidOut, WHOLE } from '../testing';
import { arrange, pin, PLAIN, sectionKey, trackKey } from './track_view';

describe('layout', () => {
  const layout = laidOut();
  it('stacks sections, tracks and depths', () => {
    const [first, second] = layout.sections;
    expect(first?.section.title).toBe('TPU:0');
    expect(first).toMatchObject({ y: RULER_PX, height: SECTION_PX + 2 * PITCH_PX + 2 * PAD_PX, nEvents: 4 });
    expect(second?.y).toBe(RULER_PX + SECTION_PX + 2 * PITCH_PX + 2 * PAD_PX);
    expect([...placeRows(WHOLE, layout).y]).toEqual([
      55,
      73,
      55 + 2 * PITCH_PX + PAD_PX + SECTION_PX + PAD_PX,
    ]);
  });
  it('counts events of derived tracks apart, so that sections add up to the run', () => {
    const arranged = arrange(FACTS.tracks, PLAIN);
    const [section, ...others] = arranged.sections;
    const [track] = section?.tracks ?? [];
    if (!section || !track) throw new Error('no track');
    const tracks = [track, { ...track, id: 9, isDerived: true, nEvents: 11 }];
    const { sections } = layoutTracks(
      { ...arranged, sections: [{ ...section, tracks }, ...others] },
      PLAIN,
      0,
    );
    expect(sections[0]).toMatchObject({ nEvents: 4, nDerived: 11, nSamples: 0 });
  });
  it('folds sections away and tracks into one thin row', () => {
    const folded = laidOut({ ...PLAIN, folded: new Set([sectionKey(5)]) });
    expect([...placeRows(WHOLE, folded).y].map(Number.isNaN)).toEqual([true, true, false]);
    const thin = laidOut({ ...PLAIN, folded: new Set([trackKey(5), trackKey(2)]) });
    const place = thin.placeOfTrack.get(5);
    expect(place && rowTop(place, 1) - rowTop(place, 0)).toBe(8);
    expect(thin.placeOfTrack.get(2)?.isFolded).toBe(false);
  });
  it('knows which tracks are in sight', () => {
    expect(tracksWithin(layout, 0, 60)).toEqual([5]);
    expect(tracksWithin(layout, 0, 1000)).toEqual([5, 2]);
  });
});

describe('pinned tracks', () => {
  const view = pin(pin(PLAIN, 5), 2);
  const arranged = arrange(FACTS.tracks, view);
  it('take at most half of the view, and scroll by themselves', () => {
    const layout = layoutTracks(arranged, view, RULER_PX, 100);
    const pinnedPx = 3 * PITCH_PX + 4 * PAD_PX;
    expect(layout).toMatchObject({ topPx: RULER_PX, pinnedPx, pinnedBottomPx: 50 });
    expect(maxPinScroll(layout)).toBe(RULER_PX + pinnedPx - 50);
    expect(trackAt(layout, contentY(layout, 49, 700, 0))?.track.id).toBe(5);
    expect(trackAt(layout, contentY(layout, 49, 700, maxPinScroll(layout)))?.track.id).toBe(2);
  });
  it('are shown whole where they are low', () => {
    const layout = layoutTracks(arranged, view, RULER_PX, 1000);
    expect(layout.pinnedBottomPx).toBe(RULER_PX + layout.pinnedPx);
    expect(maxPinScroll(layout)).toBe(0);
  });
  it('leave the ruler visible in the lowest view', () => {
    expect(layoutTracks(arranged, view, 46, 60).pinnedBottomPx).toBe(46);
  });
});
