/** Details of one compiled operation, in a drawer next to a page: requested when an operation is chosen. */
import type { VNode } from 'preact';
import { dataUrl, fetchPayload, type DataQuery } from '../api/client';
import { readIfAny, readTable } from '../api/declared';
import { OP_PROFILE } from '../api/tables/op_profile';
import type { Payload, Table as PayloadTable } from '../api/types';
import { format } from '../base/units';
import { canOpen } from '../state/catalog';
import { useLoaded } from '../state/payload';
import { openTool, tool as shownTool } from '../state/selection';
import { Failed, Loading } from '../widgets/states';
import { Facts } from '../widgets/summary';
import { PLAIN_VIEW, type TableColumn, type TableData } from '../widgets/table/model';
import { Table } from '../widgets/table/table';
import './op_card.css';
import { placeCell, SourceLines, SourceProblems } from './source';
import { idleColumns, tableData } from './tool';

export interface OpCardProps {
  run: string;
  hosts: string[];
  program: string;
  op: string;
  onClose: () => void;
}

const TABLES = OP_PROFILE.op.tables;
/** A matrix unit filled less than this is worth a line. */
const POORLY_FILLED = 0.75;
const LONG_FACTS = ['HLO', 'Source', 'Name'];

/**
 * The choice that shows the longest event on the timeline, with as much time around it; null: none was
 * traced.
 */
function aroundLongest(payload: Payload): Record<string, string> | null {
  const [longest] = readTable(payload, TABLES.longest).all();
  if (!longest) return null;
  const { host, event, start_ps: startPs, duration_ps: lengthPs } = longest;
  if (event === null || startPs === null || lengthPs === null) return null;
  return {
    hosts: host,
    event: String(event),
    start_ps: String(Math.max(0, startPs - lengthPs)),
    end_ps: String(startPs + 2 * lengthPs),
  };
}

function Links({ payload, program, op }: { payload: Payload; program: string; op: string }): VNode {
  const around = aroundLongest(payload);
  const links: { title: string; tool: string; params: Record<string, string> }[] = [
    { title: 'Graph', tool: 'graph_viewer', params: { program, op } },
    { title: 'Memory', tool: 'memory_viewer', params: { program, op } },
    ...(around ? [{ title: 'Timeline', tool: 'trace_viewer', params: around }] : []),
    { title: 'Op profile', tool: 'op_profile', params: { program, op } },
    { title: 'HLO stats', tool: 'hlo_stats', params: { program, op } },
    { title: 'Roofline', tool: 'roofline_model', params: { program, op } },
  ];
  return (
    <p class="op-links">
      {links
        .filter(({ tool }) => canOpen(tool) && tool !== shownTool.value)
        .map(({ title, tool, params }) => (
          <button key={tool} type="button" class="button small" onClick={() => openTool(tool, params)}>
            {title}
          </button>
        ))}
    </p>
  );
}

/**
 * Columns that say nothing here, where room is scarce; also sizes with padding that equal those without, and
 * empty texts.
 */
function needless(data: TableData): string[] {
  const column = (name: string): TableColumn | undefined => data.columns.find((one) => one.name === name);
  const rows = Array.from({ length: data.nRows }, (_, row) => row);
  const [size, padded] = [column('size_bytes'), column('padded_bytes')];
  const isUnpadded = size && padded && rows.every((row) => size.cell(row) === padded.cell(row));
  const empty = data.columns.filter((one) => one.kind === 'text' && rows.every((row) => !one.cell(row)));
  return [...idleColumns(data), ...empty.map(({ name }) => name), ...(isUnpadded ? ['padded_bytes'] : [])];
}

function Part({
  rows,
  mono,
}: {
  rows: { readonly table: PayloadTable } | null;
  mono: readonly string[];
}): VNode | null {
  if (!rows?.table.n_rows) return null;
  const { table } = rows;
  const data = tableData(table);
  return (
    <section aria-label={table.title}>
      <h3>
        {table.title} {table.note && <small class="muted">{table.note}</small>}
      </h3>
      <Table
        data={data}
        label={table.title}
        view={{ ...PLAIN_VIEW, hidden: new Set(needless(data)) }}
        hasToolbar={false}
        mono={mono}
        render={(column, _row, text, full) => placeCell(column, text, full)}
        maxHeight="320px"
        barToken="--warn"
      />
    </section>
  );
}

function Padding({ payload }: { payload: Payload }): VNode | null {
  const lines = (readIfAny(payload, TABLES.padding)?.all() ?? []).map(
    ({ value, role, dim, size, padded }) => {
      const dimension = role ? `${role} (dimension ${dim})` : `dimension ${dim}`;
      return `${value}: ${dimension} of ${size} padded to ${padded}`;
    },
  );
  const fills = (readIfAny(payload, TABLES.products)?.all() ?? []).flatMap(
    ({ name, fill_fraction: filled, padding }) =>
      filled !== null && filled < POORLY_FILLED
        ? [`${name} fills ${format(filled, 'fraction')} of the matrix unit: ${padding}`]
        : [],
  );
  if (!lines.length && !fills.length) return null;
  return (
    <ul class="op-hints">
      {[...fills, ...lines.slice(0, 4)].map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

function Content({ payload, program, op }: { payload: Payload; program: string; op: string }): VNode {
  const facts = readTable(payload, TABLES.facts).all();
  const hlo = facts.find(({ name }) => name === 'HLO')?.value;
  const numbers = Object.entries(payload.scalars).filter(([, { value }]) => value !== null);
  const title = facts.find(({ name }) => name === 'Program')?.value ?? program;
  return (
    <>
      <Links payload={payload} program={title} op={op} />
      <Facts
        facts={[
          ...facts.filter(({ name }) => !LONG_FACTS.includes(name)),
          ...numbers.map(([, one]) => ({ name: one.title, value: format(one.value as number, one.unit) })),
        ]}
      />
      <Padding payload={payload} />
      {hlo && (
        <section aria-label="HLO">
          <h3>HLO</h3>
          <pre class="op-hlo">{hlo}</pre>
        </section>
      )}
      <Part rows={readIfAny(payload, TABLES.shapes)} mono={['name', 'shape', 'layout']} />
      <Part rows={readIfAny(payload, TABLES.padding)} mono={['value']} />
      <Part rows={readIfAny(payload, TABLES.products)} mono={['name']} />
      <Part rows={readIfAny(payload, TABLES.contents)} mono={['name', 'opcode', 'shape', 'provenance']} />
      <Part rows={readTable(payload, TABLES.stack)} mono={['place', 'function']} />
      <SourceLines payload={payload} />
      <SourceProblems />
    </>
  );
}

export function OpCard({ run, hosts, program, op, onClose }: OpCardProps): VNode {
  const query: DataQuery = { tool: 'op_profile', question: 'op', run, hosts, params: { program, op } };
  const url = dataUrl(query);
  const { data, error, retry } = useLoaded(url, url, (abort) => fetchPayload(query, 'json', abort));
  return (
    <aside class="op-card" aria-label={`Operation ${op}`}>
      <header>
        <h2 class="mono">{op}</h2>
        <button type="button" class="button small" aria-label="Close the details" onClick={onClose}>
          ✕
        </button>
      </header>
      {error ? (
        <Failed what={op} kind={error.kind} message={error.message} remedy={error.remedy} onRetry={retry} />
      ) : data ? (
        <Content payload={data} program={program} op={op} />
      ) : (
        <Loading what={`Reading the details of ${op}`} />
      )}
    </aside>
  );
}
