/**
 * Everything that is known of one compiled operation, in a drawer beside a page: asked for when an operation
 * is chosen.
 */
import type { VNode } from 'preact';
import { dataUrl, fetchPayload, type DataQuery } from '../api/client';
import { rowsOf } from '../api/table';
import type { Payload, Table as PayloadTable } from '../api/types';
import { format } from '../base/units';
import { canOpen } from '../state/catalog';
import { useLoaded } from '../state/payload';
import { openTool, tool as shownTool } from '../state/selection';
import { Failed, Loading } from '../widgets/states';
import { Facts } from '../widgets/summary';
import { Table } from '../widgets/table/table';
import './op_card.css';
import { tableData } from './tool';

export interface OpCardProps {
  run: string;
  hosts: string[];
  program: string;
  op: string;
  onClose: () => void;
}

const LONG_FACTS = ['HLO', 'Source', 'Name'];

function Links({ payload, program, op }: { payload: Payload; program: string; op: string }): VNode {
  const longest = rowsOf(payload.tables['longest'])[0];
  const [start, length] = [Number(longest?.['start_ps'] ?? 0), Number(longest?.['duration_ps'] ?? 0)];
  const around = longest && {
    hosts: String(longest['host']),
    event: String(longest['event']),
    start_ps: String(Math.max(0, start - length)),
    end_ps: String(start + 2 * length),
  };
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

function Part({ table, mono }: { table: PayloadTable | undefined; mono: readonly string[] }): VNode | null {
  if (!table?.n_rows) return null;
  return (
    <section aria-label={table.title}>
      <h3>
        {table.title} {table.note && <small class="muted">{table.note}</small>}
      </h3>
      <Table
        data={tableData(table)}
        label={table.title}
        hasToolbar={false}
        mono={mono}
        maxHeight="320px"
        barToken="--warn"
      />
    </section>
  );
}

function Padding({ payload }: { payload: Payload }): VNode | null {
  const lines = rowsOf(payload.tables['padding']).map(
    (row) =>
      `${String(row['value'])}: ${row['role'] ? `${String(row['role'])} (dimension ${String(row['dim'])})` : `dimension ${String(row['dim'])}`} of ${String(row['size'])} padded to ${String(row['padded'])}`,
  );
  const products = rowsOf(payload.tables['products']).filter(
    (row) => typeof row['fill_fraction'] === 'number' && row['fill_fraction'] < 0.75,
  );
  const fills = products.map(
    (row) =>
      `${String(row['name'])} fills ${format(Number(row['fill_fraction']), 'fraction')} of the matrix unit: ${String(row['padding'])}`,
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
  const facts = rowsOf(payload.tables['facts']).map((row) => ({
    name: String(row['name']),
    value: String(row['value'] ?? ''),
  }));
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
      <Part table={payload.tables['shapes']} mono={['name', 'shape', 'layout']} />
      <Part table={payload.tables['padding']} mono={['value']} />
      <Part table={payload.tables['products']} mono={['name']} />
      <Part table={payload.tables['contents']} mono={['name', 'opcode', 'shape', 'provenance']} />
      <Part table={payload.tables['stack']} mono={['place', 'function']} />
    </>
  );
}

export function OpCard({ run, hosts, program, op, onClose }: OpCardProps): VNode {
  const query: DataQuery = { tool: 'op_profile', run, hosts, params: { program, op } };
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
        <Loading what={`Reading what is known of ${op}`} />
      )}
    </aside>
  );
}
