/** The events of one group of totals, longest first: what a row of the table unfolds into. */

import type { VNode } from 'preact';
import { format, plural } from '../../../base/units';
import { useLoaded } from '../../../state/payload';
import { decodeSlices } from '../data/query_model';
import type { Timeline } from '../state/timeline';

const MOST = 20;

export function GroupSlices({
  timeline,
  scope,
  params,
  by,
  group,
  onOnly,
}: {
  timeline: Timeline;
  scope: string;
  /** Those of the totals. */
  params: Readonly<Record<string, string>>;
  by: string;
  group: string;
  /** Lists only the events of the group. */
  onOnly?: (() => void) | undefined;
}): VNode {
  const order = { sort: 'dur', descending: 'true', limit: String(MOST) };
  const question = { ...params, ...order, by, group };
  const loaded = useLoaded(`${scope}\n${JSON.stringify(question)}`, scope + group, async (signal) =>
    decodeSlices(await timeline.ask('slices', question, signal)),
  );
  const slices = loaded.data;
  if (loaded.error) return <p class="tv-slices">{`${loaded.error.message} ${loaded.error.remedy}`}</p>;
  if (!slices) return <p class="tv-slices muted">Finding the events …</p>;
  const selected = timeline.selected.value?.event;
  const nMore = slices.nMatches - slices.rows.length;
  return (
    <div class="tv-slices">
      <table aria-label={`Events of ${group || 'no value'}, longest first`}>
        <thead>
          <tr>
            <th>Name</th>
            <th>Track</th>
            <th>Step</th>
            <th class="n">Start</th>
            <th class="n">Duration</th>
            <th class="n">Self time</th>
          </tr>
        </thead>
        <tbody>
          {slices.rows.map((row, index) => (
            <tr key={row.event} aria-current={row.event === selected ? 'true' : undefined}>
              <td>
                <button
                  type="button"
                  class="text-link mono"
                  onClick={() => {
                    const match = slices.matches[index];
                    if (match) timeline.follow(match);
                  }}
                >
                  {row.name}
                </button>
              </td>
              <td>{row.track_name}</td>
              <td>{row.step}</td>
              <td class="n">{format(row.start_ps ?? 0, 'ps')}</td>
              <td class="n">{format(row.duration_ps ?? 0, 'ps')}</td>
              <td class="n">{format(row.self_ps ?? 0, 'ps')}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {nMore > 0 && (
        <p class="muted">
          The {MOST} longest of {plural(slices.nMatches, 'event')}.{' '}
          {onOnly && (
            <button type="button" class="text-link" onClick={onOnly}>
              List all of them
            </button>
          )}
        </p>
      )}
    </div>
  );
}
