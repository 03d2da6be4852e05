/** The events that are selected together: how many, how long, and their totals by a key. */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { format, plural } from '../../../base/units';
import { timeLabel } from '../../../canvas/ticks';
import { zoomTo } from '../../../canvas/viewport';
import { useLoaded } from '../../../state/payload';
import { Failed, Loading } from '../../../widgets/states';
import { GroupChoice, isKey } from '../query/group_choice';
import { decodeGroups, type Groups } from '../data/query_model';
import { GroupTable } from '../query/results';
import { extentOf, MOST_EVENTS, severalParams } from '../state/several';
import type { Timeline } from '../state/timeline';
import { BUSY } from './totals';

const MARGIN = 0.05;

/** What the totals leave out: recorded and derived events are never added up. */
function leftOut({ isDerived, nDerived }: Groups): string {
  return !isDerived && nDerived > 0
    ? ` · ${plural(nDerived, 'derived event')} not counted: derived tracks repeat the recorded time`
    : '';
}

export function SeveralPanel({ timeline, scope }: { timeline: Timeline; scope: string }): VNode {
  const { several, totalsBy } = timeline;
  const events = several.events.value;
  const opened = useSignal<string | null>(null);
  const by = totalsBy.value === BUSY ? 'name' : totalsBy.value;
  const params = severalParams(events.map(({ event }) => event));
  const loaded = useLoaded(
    isKey(by) ? `${scope}\n${by}\n${params.events}` : '',
    `${scope}\n${by}`,
    async (signal) => decodeGroups(await timeline.ask('groups', { ...params, by }, signal)),
  );
  const totals = loaded.data;
  const { startPs, endPs } = extentOf(events);
  return (
    <div class="tv-drawer-body tv-totals">
      <p>
        <b>{plural(events.length, 'event')}</b>
        {totals && ` · ${format(totals.totalPs, 'ps')} in total`} · within {format(endPs - startPs, 'ps')},
        from {timeLabel(startPs, 1000)} to {timeLabel(endPs, 1000)}
        {totals && leftOut(totals)}{' '}
        <button
          type="button"
          class="text-link"
          onClick={() => {
            timeline.camera.leap(zoomTo(startPs, endPs - startPs, timeline.durationPs, MARGIN));
          }}
        >
          Zoom to the selection
        </button>{' '}
        <GroupChoice
          by={by}
          onChoose={(key) => {
            timeline.camera.noteLeap();
            opened.value = null;
            totalsBy.value = key;
          }}
        />
      </p>
      {several.isFull.value && (
        <p class="tv-refusal" role="alert">
          At most {MOST_EVENTS} events can be selected one by one. For more, draw a box with Select.
        </p>
      )}
      {loaded.isLoading && !totals && <Loading what="Adding up the events" bones={[14, 14, 14]} />}
      {loaded.error && (
        <Failed
          what="Totals of the selection"
          kind={loaded.error.kind}
          message={loaded.error.message}
          remedy={loaded.error.remedy}
          onRetry={loaded.retry}
        />
      )}
      {totals && totals.table.n_rows > 0 && (
        <GroupTable
          answer={totals}
          by={by}
          label={`Selection by ${by}`}
          timeline={timeline}
          scope={scope}
          params={params}
          opened={opened}
          sort="self_ps"
        />
      )}
    </div>
  );
}
