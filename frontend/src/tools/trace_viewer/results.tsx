/** The search results: the names with their totals, and the matches in order of time. */

import type { VNode } from 'preact';
import { plural } from '../../base/units';
import { PLAIN_VIEW, type TableColumn, type TableData } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { tableData } from '../tool';
import type { Page } from './search';
import type { Timeline } from './timeline';

const LARGEST_FIRST = { ...PLAIN_VIEW, sort: { column: 'total_ps', descending: true } };

function matchData(page: Page, timeline: Timeline): TableData {
  const tracks = new Map(timeline.facts.value?.tracks.map((track) => [track.id, track]));
  const isMany = new Set([...tracks.values()].map(({ host }) => host)).size > 1;
  const column = (
    name: string,
    title: string,
    unit: string,
    cell: (row: number) => string | number | null,
  ): TableColumn => ({ name, title, unit, kind: unit === '' ? 'text' : 'number', cell });
  const columns = [
    column('name', 'Name', '', (row) => page.matches[row]?.name ?? null),
    column('start_ps', 'Start', 'ps', (row) => page.matches[row]?.startPs ?? null),
    column('duration_ps', 'Duration', 'ps', (row) => page.matches[row]?.durationPs ?? null),
    column('track', 'Track', '', (row) => {
      const track = tracks.get(page.matches[row]?.track ?? -1);
      return track ? `${isMany ? `${track.host} · ` : ''}${track.section} · ${track.name}` : null;
    }),
  ];
  return { columns, nRows: page.matches.length };
}

export function Results({ timeline }: { timeline: Timeline }): VNode {
  const { search } = timeline;
  const page = search.page.value;
  if (!page) return <p class="muted tv-drawer-body">Searching…</p>;
  if (page.nMatches === 0)
    return (
      <p class="muted tv-drawer-body">
        No event has “{page.query.text}” in its name{page.query.hasArguments ? ' or arguments' : ''}. The
        search ignores case.
      </p>
    );
  const chosen = search.at.value === null ? undefined : search.at.value - page.first;
  const isPart = page.matches.length < page.nMatches;
  return (
    <div class="tv-results">
      {page.names && (
        <section aria-label="Names found">
          <h3>{plural(page.nNames, 'name')}</h3>
          <Table
            data={tableData(page.names)}
            label="Names found"
            view={LARGEST_FIRST}
            mono={['name']}
            rowsInFull={5}
            maxHeight="100%"
            onRow={(row) => {
              search.set({
                ...search.query.value,
                text: String(
                  tableData(page.names as NonNullable<typeof page.names>)
                    .columns.find(({ name }) => name === 'name')
                    ?.cell(row) ?? '',
                ),
              });
            }}
          />
        </section>
      )}
      <section aria-label="Matches">
        <h3>
          {plural(page.nMatches, 'match', 'matches')}
          {isPart && (
            <small>
              {' '}
              · {page.first + 1} to {page.first + page.matches.length} listed; next and previous reach all
            </small>
          )}
        </h3>
        <Table
          data={matchData(page, timeline)}
          label="Matches"
          mono={['name']}
          rowsInFull={5}
          maxHeight="100%"
          chosenRow={chosen}
          onRow={(row) => {
            void search.goTo(page.first + row);
          }}
        />
      </section>
    </div>
  );
}
