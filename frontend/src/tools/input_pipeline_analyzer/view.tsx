/**
 * The input pipeline from top to bottom: tiles, steps with their input wait, device and host side, advice,
 * operations, hosts.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readScalar, readTable, type RowsOf } from '../../api/declared';
import { INPUT_PIPELINE_ANALYZER } from '../../api/tables/input_pipeline_analyzer';
import type { Payload } from '../../api/types';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { RichText } from '../../widgets/rich_text';
import { DiagnosticsList, noticesOf } from '../../widgets/states';
import { Facts, Section, Tiles } from '../../widgets/summary';
import {
  parseView,
  PLAIN_VIEW,
  viewChange,
  type TableColumn,
  type TableData,
} from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { BreakdownSection } from '../breakdown';
import { HostsSection } from '../hosts_section';
import { StepSection } from '../step_section';
import { breakdownOf } from '../steps';
import { tableData, type ToolProps } from '../tool';
import { DataLoader } from './data_loader';
import {
  adviceOf,
  categoryTokens,
  chartNote,
  hasInputOps,
  shareOf,
  sparseCoreOf,
  tilesOf,
  type Advice,
} from './model';
import './style.css';

const { tables: TABLES, scalars: SCALARS } = INPUT_PIPELINE_ANALYZER.page;

type ViewProps = { payload: Payload } & Pick<ToolProps, 'params' | 'setParams'>;

const NO_INPUT_OPS =
  'No operation of an input pipeline was traced on the host: no tf.data iterator, no infeed, no copy to a device. The data may come from elsewhere, such as arrays in memory, or the capture recorded no calls of the host.';
const ONLY_WAITS =
  'The stages that were traced only wait for others: none that reads, prepares or copies elements was traced on the host.';
const PYTHON_WAITS =
  'No stage of an input pipeline was traced on the host. The steps wait in Python; the verdict above and ' +
  'the advice below name the place.';
/** Totals of nested operations overlap, so their share is less meaningful than that of the self time. */
const OPS_VIEW = { ...PLAIN_VIEW, hidden: new Set(['total_fraction']) };
const DOT_PX = 18;
const OPS_TOTALS = ['n_occurrences', 'self_time_ps', 'self_fraction'];

function Dotted({ text, token }: { text: string; token: string | undefined }): VNode {
  return (
    <span class="part-name">
      <span class="dot" style={{ background: `var(${token ?? '--c-idle'})` }} />
      {text}
    </span>
  );
}

function AdviceList({
  items,
  tokens,
}: {
  items: readonly Advice[];
  tokens: ReadonlyMap<string, string>;
}): VNode | null {
  if (!items.length) return null;
  return (
    <Section title="What to do" note="biggest gain first">
      <ol class="advice">
        {items.map(({ category, text, tool }, i) => (
          <li key={i}>
            <b class={category === items[i - 1]?.category ? 'hidden-text' : undefined}>
              <Dotted text={category} token={tokens.get(category)} />
            </b>
            <p>
              <RichText text={text} />{' '}
              {canOpen(tool) && (
                <button type="button" class="text-link" onClick={() => openTool(tool)}>
                  More details
                </button>
              )}
            </p>
          </li>
        ))}
      </ol>
    </Section>
  );
}

/** The categories have a dot of their color next to them. */
function withDots(data: TableData): TableData {
  return {
    ...data,
    columns: data.columns.map((column) =>
      column.name === 'category' ? { ...column, extraPx: DOT_PX } : column,
    ),
  };
}

function InputOps({
  ops,
  tokens,
  params,
  setParams,
}: { ops: RowsOf<typeof TABLES.input_ops>; tokens: ReadonlyMap<string, string> } & Omit<
  ViewProps,
  'payload'
>): VNode {
  const { table } = ops;
  const data = useMemo(() => withDots(tableData(table)), [table]);
  const view = useMemo(() => parseView(params, OPS_VIEW), [params]);
  const category = ops.text('category');
  const token = (row: number): string => tokens.get(category(row)) ?? '--c-idle';
  const customCell = (column: TableColumn, row: number, text: string): VNode | undefined => {
    return column.name === 'category' ? <Dotted text={text} token={token(row)} /> : undefined;
  };
  return (
    <Section title={table.title || 'Input operations'} note={table.note || 'on the host, by self time'}>
      <Table
        data={data}
        label={table.title || 'Input operations'}
        view={view}
        onView={(next, how) => setParams(viewChange(view, next, OPS_VIEW), how)}
        totals={OPS_TOTALS}
        mono={['operation']}
        render={customCell}
        barToken={token}
      />
    </Section>
  );
}

function HostSide({ payload }: { payload: Payload }): VNode {
  const categories = readTable(payload, TABLES.host_categories);
  const { table } = categories;
  const breakdown = useMemo(() => breakdownOf(categories.all()), [table]);
  const note = readScalar(payload, SCALARS.host_input_ps)?.note ?? '';
  return (
    <BreakdownSection
      title={table.title}
      note={table.note || 'by what it does'}
      breakdown={breakdown}
      timeOf="Self time of operations of this kind"
      shareOf="Share of the input pipeline's time"
      empty={
        hasInputOps(payload) ? ONLY_WAITS : note.includes('wait in Python') ? PYTHON_WAITS : NO_INPUT_OPS
      }
    />
  );
}

export function InputPipelineView({ payload, params, setParams }: ViewProps): VNode {
  const steps = useMemo(() => readTable(payload, TABLES.steps), [payload]);
  const breakdown = useMemo(() => readTable(payload, TABLES.breakdown), [payload]);
  const ops = readTable(payload, TABLES.input_ops);
  const hosts = readTable(payload, TABLES.hosts).table;
  const share = useMemo(() => shareOf(payload), [payload]);
  const layers = useMemo(() => breakdown.all(), [breakdown]);
  const parts = useMemo(() => breakdownOf(layers), [layers]);
  const tokens = useMemo(() => categoryTokens(payload), [payload]);
  const sparseCore = sparseCoreOf(payload);
  const notices = noticesOf(payload.diagnostics);
  const link = { params, setParams };
  return (
    <>
      <Tiles tiles={tilesOf(payload)} />
      <StepSection
        steps={steps}
        parts={layers}
        note={chartNote(steps.length, share)}
        {...(share ? { share } : {})}
        {...link}
      />
      <div class="two-columns">
        <BreakdownSection
          title="Step time breakdown"
          tip="How the time of all steps is shared among its parts"
          note={breakdown.note}
          breakdown={parts}
          timeOf="Average over the steps"
          shareOf="Share of the step"
        />
        <HostSide payload={payload} />
      </div>
      {sparseCore.length > 0 && (
        <Section
          title="SparseCores"
          tip="Time of the SparseCores, which run next to the TensorCore; mean over SparseCores and steps"
          note="outside the steps, on average"
        >
          <Facts facts={sparseCore} />
        </Section>
      )}
      <AdviceList items={adviceOf(payload)} tokens={tokens} />
      <DataLoader payload={payload} {...link} />
      {hosts.n_rows > 1 && (
        <HostsSection table={hosts} note="longest wait first; click one to show only it" />
      )}
      {hasInputOps(payload) && <InputOps ops={ops} tokens={tokens} {...link} />}
      {notices.length > 0 && (
        <Section title="About this trace" tip="Notices about this trace that matter for trusting the numbers">
          <DiagnosticsList items={notices} />
        </Section>
      )}
    </>
  );
}
