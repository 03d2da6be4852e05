/** The matches of the query line: as a list of slices, or their totals by a key; linked with the picture. */

import type { Signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { format, plural } from '../../../base/units';
import { useLoaded } from '../../../state/payload';
import { Failed, Loading } from '../../../widgets/states';
import { PLAIN_VIEW, type TableData } from '../../../widgets/table/model';
import { Table } from '../../../widgets/table/table';
import { tableData } from '../../tool';
import { GroupSlices } from './group_slices';
import { conditionOf, GroupChoice, isKey, narrowed } from './group_choice';
import { totalsParams } from '../drawing/marked';
import { decodeGroups, decodeSlices, type Counts, type Groups, type Slices } from '../data/query_model';
import type { Of, Search, Within } from '../state/search';
import type { Timeline } from '../state/timeline';

/** Slices that are listed at once. */
const MOST = 5000;
const SLICES = 'slices';
const OF_LONGEST = /^longest_/;
const IDS = new Set(['event', 'track']);

/** The stretch of the list as parameters. */
function stretchOf(timeline: Timeline, within: Within): Record<string, string> {
  const marked = timeline.marked.value;
  if (within === 'mark' && marked) return totalsParams(marked, null);
  if (within !== 'window') return {};
  const { startPs, endPs } = timeline.camera.settled.value;
  return { start_ps: String(Math.floor(startPs)), end_ps: String(Math.ceil(endPs)) };
}

function Choices({ timeline, by }: { timeline: Timeline; by: string }): VNode {
  const { search } = timeline;
  return (
    <>
      <GroupChoice
        by={by}
        options={[[SLICES, 'nothing: list the events']]}
        onChoose={(key) => {
          timeline.camera.noteLeap();
          search.opened.value = null;
          search.list.value = key;
        }}
      />
      <label class="tv-choice">
        Within
        <select
          class="field"
          value={search.within.value === 'mark' && !timeline.marked.value ? 'trace' : search.within.value}
          onChange={(event) => {
            search.within.value = event.currentTarget.value as Within;
          }}
        >
          <option value="trace">the whole trace</option>
          <option value="window">the window</option>
          {timeline.marked.value && <option value="mark">the marked interval</option>}
        </select>
      </label>
      {by === SLICES && (
        <label class="tv-choice">
          Arguments
          <input
            class="field"
            placeholder="shape, flops"
            spellcheck={false}
            value={search.columns.value}
            onChange={(event) => {
              search.columns.value = event.currentTarget.value.replace(/\s*,\s*/g, ',').trim();
            }}
          />
        </label>
      )}
    </>
  );
}

/** Recorded and derived matches are counted apart: a button switches between them. */
function KindChoice({ search, counts }: { search: Search; counts: Counts }): VNode | null {
  const { nRecorded, nDerived, isDerived } = counts;
  if (nDerived === 0 || (nRecorded === 0 && isDerived)) return null;
  const other: Of = isDerived ? 'recorded' : 'derived';
  return (
    <button
      type="button"
      class="text-link"
      data-tip="Derived tracks show the time of recorded events again, by operation, scope or program"
      onClick={() => {
        search.count(other);
      }}
    >
      {isDerived
        ? `${plural(nRecorded, 'recorded event')} instead`
        : `${nDerived.toLocaleString('en-US')} more on derived tracks`}
    </button>
  );
}

function summaryOf(answer: Slices | Groups, by: string): string {
  const n = 'nMatches' in answer ? answer.nMatches : answer.nEvents;
  const kind = answer.isDerived ? 'derived event' : 'event';
  const groups = 'nGroups' in answer ? ` in ${plural(answer.nGroups, 'group')} by ${by}` : '';
  return `${plural(n, kind)}${groups} · ${format(answer.totalPs, 'ps')} in total`;
}

function without(data: TableData, isHidden: (name: string) => boolean): TableData {
  return { ...data, columns: data.columns.filter(({ name }) => !isHidden(name)) };
}

function SliceTable({ answer, timeline }: { answer: Slices; timeline: Timeline }): VNode {
  const isMany = new Set(timeline.facts.value?.tracks.map(({ host }) => host)).size > 1;
  const data = useMemo(
    () => without(tableData(answer.table), (name) => IDS.has(name) || (name === 'host' && !isMany)),
    [answer, isMany],
  );
  const selected = timeline.selected.value?.event;
  const chosen = answer.matches.findIndex(({ event }) => event === selected);
  return (
    <Table
      data={data}
      label="Slices"
      mono={['name']}
      rowsInFull={5}
      maxHeight="100%"
      chosenRow={chosen < 0 ? undefined : chosen}
      onRow={(row) => {
        const match = answer.matches[row];
        if (match) timeline.follow(match);
      }}
    />
  );
}

export function GroupTable({
  answer,
  by,
  label,
  timeline,
  scope,
  params,
  opened,
  sort = 'total_ps',
  onOnly,
}: {
  answer: Groups;
  by: string;
  label: string;
  timeline: Timeline;
  scope: string;
  /** Those of the request. */
  params: Readonly<Record<string, string>>;
  /** The group that is unfolded; null: none. */
  opened: Signal<string | null>;
  /** The column of which the largest come first. */
  sort?: string;
  /** Leaves only the events of a group. */
  onOnly?(condition: string): void;
}): VNode {
  const data = useMemo(() => without(tableData(answer.table), (name) => OF_LONGEST.test(name)), [answer]);
  const groups = useMemo(() => {
    const column = data.columns.find(({ name }) => name === 'group');
    return Array.from({ length: data.nRows }, (_, row) => String(column?.cell(row) ?? ''));
  }, [data]);
  const openRow = opened.value === null ? -1 : groups.indexOf(opened.value);
  const onlyOf = (row: number): (() => void) | undefined => {
    const condition = onOnly && conditionOf(by, groups[row] ?? '');
    return condition ? () => onOnly(condition) : undefined;
  };
  return (
    <Table
      data={data}
      label={label}
      view={{ ...PLAIN_VIEW, sort: { column: sort, descending: true } }}
      mono={['group']}
      rowsInFull={5}
      maxHeight="100%"
      render={(column, row, text) => {
        if (column.name !== 'group') return undefined;
        const only = onlyOf(row);
        return (
          <span class="tv-group">
            <span class="tv-unfold" aria-hidden="true">
              {row === openRow ? '▾' : '▸'}
            </span>
            <span>{text === '' ? '(none)' : text}</span>
            {only && (
              <button
                type="button"
                class="text-link"
                data-tip="List only these"
                onClick={(event) => {
                  event.stopPropagation();
                  only();
                }}
              >
                only
              </button>
            )}
          </span>
        );
      }}
      chosenRow={openRow < 0 ? undefined : openRow}
      onRow={(row) => {
        timeline.camera.noteLeap();
        opened.value = row === openRow ? null : (groups[row] ?? null);
      }}
      detail={(row) => (
        <GroupSlices
          key={groups[row]}
          timeline={timeline}
          scope={scope}
          params={params}
          by={by}
          group={groups[row] ?? ''}
          onOnly={onlyOf(row)}
        />
      )}
    />
  );
}

export function Results({ timeline, scope }: { timeline: Timeline; scope: string }): VNode {
  const { search } = timeline;
  const by = search.list.value ?? SLICES;
  const isList = by === SLICES;
  const params = {
    ...search.params,
    ...stretchOf(timeline, search.within.value),
    limit: String(MOST),
    ...(isList ? (search.columns.value ? { arguments: search.columns.value } : {}) : { by }),
  };
  const isSettled = search.page.value?.text === search.text.value && isKey(by);
  const loaded = useLoaded<Slices | Groups>(
    isSettled ? `${scope}\n${by}\n${JSON.stringify(params)}` : '',
    `${scope}\n${by}`,
    async (signal) =>
      isList
        ? decodeSlices(await timeline.ask('slices', params, signal))
        : decodeGroups(await timeline.ask('groups', params, signal)),
  );
  const answer = loaded.data;
  const nRows = answer?.table.n_rows ?? 0;
  const nAll = answer ? ('nMatches' in answer ? answer.nMatches : answer.nGroups) : 0;
  return (
    <div class="tv-drawer-body tv-results">
      <div class="tv-results-bar">
        <b>{answer ? summaryOf(answer, by) : '…'}</b>
        {answer && nRows < nAll && (
          <span class="muted">the first {nRows.toLocaleString('en-US')} are listed</span>
        )}
        {answer && <KindChoice search={search} counts={answer} />}
        <Choices timeline={timeline} by={by} />
      </div>
      {search.isStopped.value && <p class="muted">Stopped waiting. Enter in the query line asks again.</p>}
      {loaded.isLoading && !answer && !search.isStopped.value && (
        <Loading what="Finding the events" bones={[14, 14, 14]} />
      )}
      {loaded.error && (
        <Failed
          what="The query"
          kind={loaded.error.kind}
          message={loaded.error.message}
          remedy={loaded.error.remedy}
          onRetry={loaded.retry}
        />
      )}
      {answer && nRows === 0 && <p class="muted">No event matches there.</p>}
      {answer &&
        nRows > 0 &&
        ('matches' in answer ? (
          <SliceTable answer={answer} timeline={timeline} />
        ) : (
          <GroupTable
            answer={answer}
            by={by}
            label={`Totals by ${by}`}
            timeline={timeline}
            scope={scope}
            params={{ ...search.params, ...stretchOf(timeline, search.within.value) }}
            opened={search.opened}
            onOnly={(condition) => {
              search.set(narrowed(search.text.value.trim(), condition));
              search.list.value = SLICES;
            }}
          />
        ))}
    </div>
  );
}
