/** The marked interval: its length, the totals of what ran within it by a key, and how busy its tracks were. */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { exactText, format, plural } from '../../../base/units';
import { timeLabel } from '../../../canvas/ticks';
import { useLoaded } from '../../../state/payload';
import { Failed, Loading } from '../../../widgets/states';
import { PLAIN_VIEW } from '../../../widgets/table/model';
import { Table } from '../../../widgets/table/table';
import { tableData } from '../../tool';
import { GroupChoice, isKey } from '../query/group_choice';
import { totalsParams, type Marked } from '../drawing/marked';
import { decodeGroups, utilizationTable } from '../data/query_model';
import { GroupTable } from '../query/results';
import type { Timeline } from '../state/timeline';

/** The choice that shows how busy tracks were, instead of a key. */
export const BUSY = 'busy';
const BUSIEST_FIRST = { ...PLAIN_VIEW, sort: { column: 'busy_fraction', descending: true } };
const MOST_GROUPS = '20000';

function Utilization({
  timeline,
  params,
  scope,
}: {
  timeline: Timeline;
  params: Record<string, string>;
  scope: string;
}): VNode {
  const range = Object.fromEntries(Object.entries(params).filter(([name]) => !name.startsWith('depth_')));
  const loaded = useLoaded(`${scope}\n${JSON.stringify(range)}`, scope, async (signal) =>
    utilizationTable(await timeline.ask('utilization', range, signal)),
  );
  const isMany = new Set(timeline.facts.value?.tracks.map(({ host }) => host)).size > 1;
  const names = ['section', 'name', ...(isMany ? ['host'] : []), 'is_derived', 'busy_ps', 'busy_fraction'];
  const data = useMemo(() => loaded.data && tableData(loaded.data, names), [loaded.data]);
  if (!data) return <Loading what="Adding up how busy the tracks were" bones={[14, 14, 14]} />;
  return <Table data={data} label="Utilization" view={BUSIEST_FIRST} rowsInFull={5} maxHeight="100%" />;
}

export function TotalsPanel({
  timeline,
  marked,
  scope,
}: {
  timeline: Timeline;
  marked: Marked;
  scope: string;
}): VNode {
  const layout = timeline.layout.value;
  const by = timeline.totalsBy;
  const opened = useSignal<string | null>(null);
  const isBusy = by.value === BUSY;
  // Derived lines repeat the same time.
  const shownIds =
    layout.nHidden > 0
      ? [...layout.placeOfTrack.values()].filter(({ track }) => !track.isDerived).map(({ track }) => track.id)
      : null;
  const range = totalsParams(marked, shownIds);
  const params = { ...range, by: isBusy ? 'name' : by.value, limit: MOST_GROUPS };
  const loaded = useLoaded(
    isKey(by.value) ? `${scope}\n${JSON.stringify(params)}` : '',
    `${scope}\n${by.value}`,
    async (signal) => decodeGroups(await timeline.ask('groups', params, signal)),
  );
  const totals = loaded.data;
  const lengthPs = marked.endPs - marked.startPs;
  const of = marked.trackIds
    ? `in ${plural(marked.trackIds.length, 'track')}`
    : layout.nHidden > 0
      ? 'in the tracks shown'
      : 'in all tracks';
  return (
    <div class="tv-drawer-body tv-totals">
      <p>
        <b title={exactText(lengthPs, 'ps')}>{format(lengthPs, 'ps')}</b> from{' '}
        {timeLabel(marked.startPs, 1000)} to {timeLabel(marked.endPs, 1000)}
        {totals && ` · ${plural(totals.nEvents, totals.isDerived ? 'derived event' : 'event')} ${of}`}{' '}
        <GroupChoice
          by={by.value}
          options={[[BUSY, 'nothing: how busy each track was']]}
          onChoose={(key) => {
            timeline.camera.noteLeap();
            opened.value = null;
            by.value = key;
          }}
        />
      </p>
      {isBusy && <Utilization timeline={timeline} params={range} scope={scope} />}
      {!isBusy && loaded.isLoading && !totals && (
        <Loading what="Adding up what ran there" bones={[14, 14, 14]} />
      )}
      {!isBusy && loaded.error && (
        <Failed
          what="Totals of the interval"
          kind={loaded.error.kind}
          message={loaded.error.message}
          remedy={loaded.error.remedy}
          onRetry={loaded.retry}
        />
      )}
      {!isBusy && totals?.table.n_rows === 0 && <p class="muted">Nothing ran there {of}.</p>}
      {!isBusy && totals && totals.table.n_rows > 0 && (
        <GroupTable
          answer={totals}
          by={by.value}
          label={`Totals by ${by.value}`}
          timeline={timeline}
          scope={scope}
          params={range}
          opened={opened}
          sort="self_ps"
        />
      )}
    </div>
  );
}
