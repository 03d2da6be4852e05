/** Two marks or steps compared: the totals of both by name or track, and B − A. */

import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readNumber, readTable } from '../../../api/declared';
import { TRACE_VIEWER } from '../../../api/tables/trace_viewer';
import type { Payload, Table as PayloadTable } from '../../../api/types';
import { exactText, format } from '../../../base/units';
import { useLoaded } from '../../../state/payload';
import { Segments } from '../../../widgets/segments';
import { Failed, Loading } from '../../../widgets/states';
import type { TableData } from '../../../widgets/table/model';
import { Table } from '../../../widgets/table/table';
import { tableData } from '../../tool';
import { shownTrackIds } from '../drawing/marked';
import { isInstant, letterOf, type Mark, type Pair } from '../state/marks';
import { tokenOf } from './row';
import type { Timeline } from '../state/timeline';

const { tables: TABLES, scalars: SCALARS } = TRACE_VIEWER.compare;
const COLUMNS = [
  'name',
  'self_a_ps',
  'self_b_ps',
  'self_difference_ps',
  'n_a',
  'n_b',
  'total_a_ps',
  'total_b_ps',
  'total_difference_ps',
];
const MOST_STEPS = 500;
const BY = [
  { name: 'name', title: 'name' },
  { name: 'track', title: 'track' },
] as const;

interface Compared {
  readonly lengthPs: readonly [number, number];
  readonly table: PayloadTable;
}

function decodeCompared(payload: Payload): Compared {
  return {
    lengthPs: [readNumber(payload, SCALARS.length_a_ps) ?? 0, readNumber(payload, SCALARS.length_b_ps) ?? 0],
    table: readTable(payload, TABLES.compared).table,
  };
}

/** "+1.30 ms", "−30.0 µs". */
export function signed(ps: number): string {
  return `${ps < 0 ? '−' : '+'}${format(Math.abs(ps), 'ps')}`;
}

/** The request; tracks are those that are shown, or a box's own if both marks have the same. */
export function compareParams(
  a: Mark,
  b: Mark,
  by: Pair['by'],
  shownIds: readonly number[] | null,
): Record<string, string> {
  const own = a.trackIds && a.trackIds.join() === b.trackIds?.join() ? a.trackIds : shownIds;
  return {
    a_start_ps: String(Math.floor(a.startPs)),
    a_end_ps: String(Math.ceil(a.endPs)),
    b_start_ps: String(Math.floor(b.startPs)),
    b_end_ps: String(Math.ceil(b.endPs)),
    by,
    ...(own ? { tracks: own.join(',') } : {}),
  };
}

/** Column titles with the letters of the two marks instead of A and B. */
export function lettered(data: TableData, { a, b }: Pick<Pair, 'a' | 'b'>): TableData {
  const columns = data.columns.map((column) => ({
    ...column,
    title: column.title.replace(/B − A$|\b[AB]$/, (end) =>
      end.length > 1 ? `${letterOf(b)} − ${letterOf(a)}` : letterOf(end === 'A' ? a : b),
    ),
  }));
  return { ...data, columns };
}

/** The intervals among the marks, and the steps; a chosen step becomes a mark. */
function WindowChoice({
  timeline,
  side,
  chosen,
}: {
  timeline: Timeline;
  side: 'a' | 'b';
  chosen: number | null;
}): VNode {
  const { marks } = timeline;
  const steps = (timeline.overview?.steps ?? []).slice(0, MOST_STEPS);
  const choose = (value: string): void => {
    const [kind, number] = [value.slice(0, 1), Number(value.slice(1))];
    const step = kind === 's' ? steps[number] : undefined;
    const index = step
      ? marks.add({
          startPs: step.startPs,
          endPs: step.startPs + Math.max(step.durationPs, 1),
          trackIds: null,
          depths: null,
          name: step.name,
          note: '',
        })
      : number;
    const rest = marks.intervals.filter((place) => place !== index);
    const other = marks.pair.value?.[side === 'a' ? 'b' : 'a'];
    const partner = other !== undefined && other !== index ? other : rest.at(-1);
    if (index < 0) return;
    if (partner === undefined) return;
    marks.compare(side === 'a' ? { a: index, b: partner } : { a: partner, b: index });
  };
  return (
    <select
      class="field"
      aria-label={side === 'a' ? 'First of the two' : 'Second of the two'}
      value={chosen === null ? '' : `m${String(chosen)}`}
      onChange={(event) => {
        choose(event.currentTarget.value);
      }}
    >
      {chosen === null && <option value="">Choose a mark or step</option>}
      <optgroup label="Marks">
        {marks.intervals.map((index) => (
          <option key={index} value={`m${String(index)}`}>
            {letterOf(index)} {marks.list.value[index]?.name}
          </option>
        ))}
      </optgroup>
      {steps.length > 0 && (
        <optgroup label="Steps">
          {steps.map((step, index) => (
            <option key={index} value={`s${String(index)}`}>
              {step.name} · {format(step.durationPs, 'ps')}
            </option>
          ))}
        </optgroup>
      )}
    </select>
  );
}

function Difference({ timeline, pair, scope }: { timeline: Timeline; pair: Pair; scope: string }): VNode {
  const layout = timeline.layout.value;
  const list = timeline.marks.list.value;
  const [a, b] = [list[pair.a] as Mark, list[pair.b] as Mark];
  const params = compareParams(a, b, pair.by, shownTrackIds(layout));
  const loaded = useLoaded(`${scope}\n${JSON.stringify(params)}`, scope, async (signal) =>
    decodeCompared(await timeline.ask('compare', params, signal)),
  );
  const compared = loaded.data;
  const data = useMemo(
    () => compared && lettered(tableData(compared.table, COLUMNS), pair),
    [compared, pair],
  );
  return (
    <>
      {compared && (
        <p title={exactText(compared.lengthPs[1] - compared.lengthPs[0], 'ps')}>
          {letterOf(pair.a)} lasts {format(compared.lengthPs[0], 'ps')}, {letterOf(pair.b)}{' '}
          {format(compared.lengthPs[1], 'ps')}: <b>{signed(compared.lengthPs[1] - compared.lengthPs[0])}</b>.
        </p>
      )}
      {loaded.isLoading && !compared && <Loading what="Adding up both windows" bones={[14, 14, 14]} />}
      {loaded.error && (
        <Failed
          what="Comparison"
          kind={loaded.error.kind}
          message={loaded.error.message}
          remedy={loaded.error.remedy}
          onRetry={loaded.retry}
        />
      )}
      {data && data.nRows === 0 && <p class="muted">Nothing ran in either window.</p>}
      {data && data.nRows > 0 && (
        <Table
          data={data}
          label="Two windows compared"
          mono={['name']}
          rowsInFull={5}
          maxHeight="100%"
          render={(column, row, text) => {
            if (!column.name.endsWith('difference_ps')) return undefined;
            return Number(column.cell(row) ?? 0) > 0 ? <span class="tv-more">{text}</span> : text;
          }}
        />
      )}
    </>
  );
}

export function ComparePanel({ timeline, scope }: { timeline: Timeline; scope: string }): VNode {
  const { marks } = timeline;
  const pair = marks.pair.value;
  const both = pair && [marks.list.value[pair.a], marks.list.value[pair.b]];
  const isValid = both?.every((mark) => mark && !isInstant(mark)) ?? false;
  return (
    <section aria-label="Comparison" class="tv-compare">
      <div class="tv-compare-head">
        <h3>Compare</h3>
        {(['a', 'b'] as const).map((side) => (
          <span key={side} class="tv-compare-side">
            {pair && (
              <b class="tv-letter" style={{ '--mark': tokenOf(pair[side]) }}>
                {letterOf(pair[side])}
              </b>
            )}
            <WindowChoice timeline={timeline} side={side} chosen={pair?.[side] ?? null} />
          </span>
        ))}
        {pair && (
          <>
            <Segments
              label="Rows of the comparison"
              choices={BY}
              chosen={pair.by}
              onChoose={(by) => {
                marks.pair.value = { ...pair, by: by === 'track' ? 'track' : 'name' };
              }}
            />
            <button
              type="button"
              class="button small"
              aria-pressed={pair.isBeside}
              data-tip="Draw the two below each other, starts aligned  v"
              onClick={() => {
                marks.pair.value = { ...pair, isBeside: !pair.isBeside };
              }}
            >
              Side by side
            </button>
          </>
        )}
      </div>
      {!pair && (
        <p class="muted">
          Choose two intervals among the marks, or two steps: their totals and the differences follow.
        </p>
      )}
      {pair && isValid && <Difference timeline={timeline} pair={pair} scope={scope} />}
    </section>
  );
}
