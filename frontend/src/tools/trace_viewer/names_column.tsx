/** The left column: sections (they stick while their tracks scroll by) and the names of the tracks in sight, each a fold button. */

import type { VNode } from 'preact';
import { plural } from '../../base/units';
import { sectionKey, trackKey, type SectionPlace, type TrackPlace } from './layout';
import type { Timeline } from './timeline';

function TrackName({ place, top, timeline }: { place: TrackPlace; top: number; timeline: Timeline }): VNode {
  const { track } = place;
  const style = { top: `${String(place.y - top)}px`, height: `${String(place.height)}px` };
  const tip = `${track.name} · ${plural(track.nEvents, 'event')}`;
  if (track.nDepths < 2) return <div class="tv-track" style={style} title={tip}><span>{track.name}</span></div>;
  return (
    <button type="button" class="tv-track" style={style} title={tip} aria-expanded={!place.isFolded} onClick={() => { timeline.toggle(trackKey(track.id)); }}>
      <i aria-hidden="true">{place.isFolded ? '▸' : '▾'}</i><span>{track.name}</span>
    </button>
  );
}

function Section(props: { section: SectionPlace; from: number; to: number; timeline: Timeline }): VNode {
  const { section, from, to, timeline } = props;
  const shown = section.tracks.filter(({ y, height }) => y <= to && y + height >= from);
  return (
    <section class="tv-section" style={{ top: `${String(section.y)}px`, height: `${String(section.height)}px` }} aria-label={section.name}>
      <button type="button" class="tv-section-head" aria-expanded={!section.isFolded} onClick={() => { timeline.toggle(sectionKey(section.name)); }}>
        <i aria-hidden="true">{section.isFolded ? '▸' : '▾'}</i> {section.name || 'Other'}
        <small>{plural(section.nTracks, 'track')} · {plural(section.nEvents, 'event')}</small>
      </button>
      {shown.map((place) => <TrackName key={place.track.id} place={place} top={section.y} timeline={timeline} />)}
    </section>
  );
}

export function NamesColumn({ timeline, fromPx, toPx }: { timeline: Timeline; fromPx: number; toPx: number }): VNode {
  return (
    <>
      {timeline.layout.value.sections.map((section) => (
        <Section key={section.name} section={section} from={fromPx} to={toPx} timeline={timeline} />
      ))}
    </>
  );
}
