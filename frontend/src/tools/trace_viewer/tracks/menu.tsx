/** Which tracks are shown: a filter by name, their depth, flows, and a list with a checkbox for each. */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { matches, wordsOf } from '../../../base/search';
import { plural } from '../../../base/units';
import { PopupButton } from '../../../widgets/menu';
import { textWidth } from './names_width';
import { shortNames } from './short_names';
import { FlowKinds } from './flow_kinds';
import type { Timeline } from '../state/timeline';
import { hide, PLAIN, sectionsOf, trackKey } from '../drawing/track_view';

const DEPTHS = [0, 1, 2, 3, 5, 8] as const;
/** Longer lists need the filter. */
const MAX_LISTED = 400;
/** The room for a name in the list. */
const LIST_NAME_PX = 220;

function TrackList({ timeline }: { timeline: Timeline }): VNode {
  const filter = useSignal('');
  const view = timeline.trackView.value;
  const words = wordsOf(filter.value);
  const texts = useMemo(
    () =>
      shortNames(
        (timeline.facts.value?.tracks ?? []).slice(0, MAX_LISTED).map(({ name }) => name),
        LIST_NAME_PX,
        textWidth,
      ),
    [timeline.facts.value],
  );
  const sections = sectionsOf(timeline.facts.value?.tracks ?? []).map((section) => ({
    ...section,
    tracks: section.tracks.filter(({ name }) => matches(`${section.title} ${name}`, words)),
  }));
  let room = MAX_LISTED;
  return (
    <>
      <input
        class="field"
        type="search"
        placeholder="Find a track"
        aria-label="Find a track"
        value={filter.value}
        onInput={(event) => {
          filter.value = event.currentTarget.value;
        }}
      />
      <div class="tv-track-list" role="group" aria-label="Tracks to show">
        {sections
          .filter(({ tracks }) => tracks.length > 0)
          .map((section) => {
            const ids = section.tracks.map(({ id }) => id);
            const nShown = ids.filter((id) => !view.hidden.has(id)).length;
            const listed = section.tracks.slice(0, Math.max(0, room));
            room -= listed.length;
            return (
              <div key={section.key}>
                <label class="tv-list-head">
                  <input
                    type="checkbox"
                    checked={nShown === ids.length}
                    ref={(element) => {
                      if (element) element.indeterminate = nShown > 0 && nShown < ids.length;
                    }}
                    onChange={() => {
                      timeline.changeTracks(hide(view, ids, nShown === ids.length));
                    }}
                  />
                  {section.title}
                </label>
                {listed.map((track) => (
                  <label key={track.id}>
                    <input
                      type="checkbox"
                      checked={!view.hidden.has(track.id)}
                      onChange={() => {
                        timeline.changeTracks(hide(view, [track.id], !view.hidden.has(track.id)));
                      }}
                    />
                    <span title={track.name}>{texts.get(track.name) ?? track.name}</span>
                  </label>
                ))}
                {listed.length < section.tracks.length && (
                  <p class="muted">and {plural(section.tracks.length - listed.length, 'track')} more</p>
                )}
              </div>
            );
          })}
      </div>
    </>
  );
}

/** Opens the menu, with the focus in its filter, when the key asks for it. */
function useOpening(timeline: Timeline): { current: HTMLSpanElement | null } {
  const anchor = useRef<HTMLSpanElement>(null);
  const nCalls = timeline.stack.menuCalls.value;
  useEffect(() => {
    if (nCalls === 0) return;
    const button = anchor.current?.querySelector<HTMLElement>('button[aria-expanded]');
    if (button?.getAttribute('aria-expanded') === 'false') button.click();
    requestAnimationFrame(() => anchor.current?.querySelector<HTMLElement>('input')?.focus());
  }, [nCalls]);
  return anchor;
}

function Checks({ timeline }: { timeline: Timeline }): VNode {
  const view = timeline.trackView.value;
  const nFlows = timeline.nFlows.value;
  return (
    <>
      <label class="tv-field">
        <span class="tv-check-line">
          <input
            type="checkbox"
            checked={view.hidesEmpty}
            onChange={(event) => {
              timeline.changeTracks({ ...view, hidesEmpty: event.currentTarget.checked });
            }}
          />
          Hide tracks without events in the window
        </span>
      </label>
      <label class="tv-field">
        <span class="tv-check-line">
          <input
            type="checkbox"
            checked={timeline.hasAllFlows.value}
            onChange={(event) => {
              timeline.showFlows(event.currentTarget.checked);
            }}
          />
          Arrows of all flows
        </span>
        {nFlows > 0 && <small class="muted">{plural(nFlows, 'flow')} in view</small>}
      </label>
    </>
  );
}

export function TracksMenu({ timeline }: { timeline: Timeline }): VNode {
  const anchor = useOpening(timeline);
  const view = timeline.trackView.value;
  const { nHidden } = timeline.layout.value;
  const all = timeline.facts.value?.tracks ?? [];
  const foldAll = (): void => {
    timeline.changeTracks({
      ...view,
      folded: new Set(
        view.folded.size > 0 ? [] : all.filter(({ nDepths }) => nDepths > 1).map(({ id }) => trackKey(id)),
      ),
    });
  };
  return (
    <span ref={anchor}>
      <PopupButton
        label={nHidden > 0 ? `Tracks (${String(all.length - nHidden)} of ${String(all.length)})` : 'Tracks'}
        title="Tracks"
      >
        <div class="tv-tracks-menu">
          <label class="tv-field">
            Only tracks named{' '}
            <input
              class="field"
              type="search"
              aria-label="Only tracks named"
              placeholder="any"
              value={view.filter}
              onInput={(event) => {
                timeline.changeTracks({ ...view, filter: event.currentTarget.value });
              }}
            />
          </label>
          <label class="tv-field">
            Rows of each track
            <select
              class="field"
              aria-label="Rows of each track"
              value={String(view.maxDepths)}
              onChange={(event) => {
                timeline.changeTracks({
                  ...view,
                  maxDepths: Number(event.currentTarget.value),
                  rows: new Map(),
                });
              }}
            >
              {DEPTHS.map((depths) => (
                <option key={depths} value={String(depths)}>
                  {depths === 0 ? 'all' : `at most ${String(depths)}`}
                </option>
              ))}
            </select>
          </label>
          <Checks timeline={timeline} />
          <FlowKinds timeline={timeline} />
          <p class="tv-field">
            <button type="button" class="button small" onClick={foldAll}>
              {view.folded.size > 0 ? 'Unfold all' : 'Fold all'}
            </button>
            <button
              type="button"
              class="button small"
              onClick={() => {
                timeline.changeTracks(PLAIN);
              }}
            >
              Reset
            </button>
          </p>
          <hr />
          <TrackList timeline={timeline} />
        </div>
      </PopupButton>
    </span>
  );
}
