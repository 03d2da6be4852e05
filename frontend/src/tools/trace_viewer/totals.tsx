/** The marked interval: its length, and by name how often and how long each event ran within it. */

import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { exactText, format, plural } from '../../base/units';
import { useLoaded } from '../../state/payload';
import { timeLabel } from '../../canvas/ticks';
import { Failed, Loading } from '../../widgets/states';
import { PLAIN_VIEW } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { tableData } from '../tool';
import { decodeTotals } from './details_model';
import { totalsParams, type Marked } from './marked';
import type { Timeline } from './timeline';

const LARGEST_FIRST = { ...PLAIN_VIEW, sort: { column: 'self_ps', descending: true } };

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
  // Derived lines repeat the same time.
  const shownIds =
    layout.nHidden > 0
      ? [...layout.placeOfTrack.values()].filter(({ track }) => !track.isDerived).map(({ track }) => track.id)
      : null;
  const params = totalsParams(marked, shownIds);
  const loaded = useLoaded(`${scope}\n${JSON.stringify(params)}`, scope, async (signal) =>
    decodeTotals(await timeline.ask('totals', params, signal)),
  );
  const totals = loaded.data;
  const data = useMemo(() => totals?.table && tableData(totals.table), [totals]);
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
        {totals && ` · ${plural(totals.nEvents, 'event')} ${of}`}
      </p>
      {loaded.isLoading && !totals && <Loading what="Adding up what ran there" bones={[14, 14, 14]} />}
      {loaded.error && (
        <Failed
          what="Totals of the interval"
          kind={loaded.error.kind}
          message={loaded.error.message}
          remedy={loaded.error.remedy}
          onRetry={loaded.retry}
        />
      )}
      {data && data.nRows === 0 && <p class="muted">Nothing ran there {of}.</p>}
      {data && data.nRows > 0 && (
        <Table
          data={data}
          label="Totals by name"
          view={LARGEST_FIRST}
          mono={['name']}
          rowsInFull={5}
          maxHeight="100%"
        />
      )}
    </div>
  );
}
