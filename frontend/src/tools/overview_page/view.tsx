/**
 * The overview from top to bottom: tiles, findings, steps, step time breakdown, top operations, advice,
 * environment, diagnostics.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readIfAny, readTable, type ColumnOf, type RowsOf } from '../../api/declared';
import { OVERVIEW_PAGE } from '../../api/tables/overview_page';
import type { Payload } from '../../api/types';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { RichText } from '../../widgets/rich_text';
import { DiagnosticsList, noticesOf } from '../../widgets/states';
import { Facts, Section, Tiles } from '../../widgets/summary';
import { PLAIN_VIEW, type TableColumn } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { BreakdownSection } from '../breakdown';
import { HostsSection } from '../hosts_section';
import { StepSection } from '../step_section';
import { breakdownOf, stepNames, stepRow } from '../steps';
import { idleColumns, sideToken, tableData, type ToolProps } from '../tool';
import { FindingsSection } from './findings';
import { factsOf, recommendationsOf, stepChoices, stepParts, tilesOf, type Recommendation } from './model';
import { StepPicker } from './one_step';
import './style.css';

const { tables: TABLES } = OVERVIEW_PAGE.page;

const OPS_TOOL = 'framework_op_stats';
const TOP_OPS_COLUMNS: readonly ColumnOf<typeof TABLES.top_ops>[] = [
  'operation',
  'type',
  'host_or_device',
  'self_time_ps',
  'self_fraction',
  'flop_rate_flops_per_s',
  'tensor_core_fraction',
];

function TopOps({ ops }: { ops: RowsOf<typeof TABLES.top_ops> }): VNode | null {
  const { table } = ops;
  const data = useMemo(() => tableData(table, TOP_OPS_COLUMNS), [table]);
  const view = useMemo(() => ({ ...PLAIN_VIEW, hidden: new Set(idleColumns(data)) }), [data]);
  if (!data.nRows) return null;
  const open = (column: TableColumn, row: number, text: string): VNode | undefined =>
    column.name === 'operation' ? (
      <button
        type="button"
        class="text-link mono"
        onClick={() => openTool(OPS_TOOL, { 'f.operation': `=${String(column.cell(row))}` })}
      >
        {text}
      </button>
    ) : undefined;
  const all = (
    <button type="button" class="text-link" onClick={() => openTool(OPS_TOOL)}>
      All operations
    </button>
  );
  return (
    <Section title={table.title || 'Top operations'} note={table.note || 'by self time'} end={all}>
      <Table
        data={data}
        view={view}
        label={table.title || 'Top operations'}
        hasToolbar={false}
        mono={['operation']}
        render={open}
        barToken={sideToken(ops.text('host_or_device'))}
      />
    </Section>
  );
}

function Recommendations({ items }: { items: readonly Recommendation[] }): VNode | null {
  if (!items.length) return null;
  return (
    <Section title="What to do next" tip="What to change, and which pages to open next">
      <ul class="recommendations">
        {items.map(({ text, tool }, i) => (
          <li key={i}>
            {canOpen(tool) ? (
              <button type="button" class="text-link" onClick={() => openTool(tool)}>
                <RichText text={text} />
              </button>
            ) : (
              <RichText text={text} />
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The step that the verdict and the findings describe; empty: all of them. */
export function shownStep(payload: Payload, params: ToolProps['params']): string {
  const step = params['step'] ?? '';
  if (!step || !readIfAny(payload, TABLES.findings)) return '';
  const names = stepNames(readTable(payload, TABLES.steps));
  return names[stepRow(names, step)] ?? step;
}

/**
 * The chart of steps; if steps are explained, a click or the list requests why one took as long as it did.
 */
function Steps({ payload, params, setParams }: ViewProps): VNode | null {
  const steps = useMemo(() => readTable(payload, TABLES.steps), [payload]);
  const parts = useMemo(() => stepParts(payload), [payload]);
  const findings = readIfAny(payload, TABLES.findings);
  const step = shownStep(payload, params);
  const names = useMemo(() => stepNames(steps), [steps]);
  if (!findings) return <StepSection steps={steps} parts={parts} params={params} setParams={setParams} />;
  const row = stepRow(names, step);
  const show = (name: string | undefined): void => {
    if ((name ?? '') !== step) setParams({ step: name, finding: undefined }, 'push');
  };
  const choice = {
    row,
    choose: (index: number) => show(names[index]),
    hint: 'Click to see why it took this long',
  };
  const picker = <StepPicker choices={stepChoices(payload, row)} step={names[row] ?? ''} onStep={show} />;
  return (
    <StepSection
      steps={steps}
      parts={parts}
      choice={choice}
      tools={picker}
      params={params}
      setParams={setParams}
    />
  );
}

type ViewProps = { payload: Payload } & Pick<ToolProps, 'params' | 'setParams'>;

export function OverviewView({ payload, params, setParams }: ViewProps): VNode {
  const findings = readIfAny(payload, TABLES.findings)?.table;
  const causes = readIfAny(payload, TABLES.causes)?.table;
  const breakdown = useMemo(() => readTable(payload, TABLES.breakdown), [payload]);
  const topOps = readTable(payload, TABLES.top_ops);
  const hosts = readIfAny(payload, TABLES.hosts)?.table;
  const facts = factsOf(payload);
  const notices = noticesOf(payload.diagnostics);
  const parts = useMemo(() => breakdownOf(breakdown.all()), [breakdown]);
  // A chart of a single step would repeat the bar of its breakdown.
  const isShownBelow = readTable(payload, TABLES.steps).length === 1 && parts.parts.length > 0;
  return (
    <>
      <Tiles tiles={tilesOf(payload)} />
      {findings && (
        <FindingsSection
          payload={payload}
          table={findings}
          causes={causes}
          params={params}
          setParams={setParams}
        />
      )}
      {!isShownBelow && <Steps payload={payload} params={params} setParams={setParams} />}
      <div class="overview-columns">
        <BreakdownSection
          title="Step time breakdown"
          tip="How the time of all steps is shared among its parts"
          note={breakdown.note}
          breakdown={parts}
          timeOf="Average over the steps"
          shareOf="Share of the step"
        />
        <TopOps ops={topOps} />
      </div>
      {hosts && hosts.n_rows > 1 && (
        <HostsSection table={hosts} note="slowest first; click one to show only it" />
      )}
      <Recommendations items={recommendationsOf(payload)} />
      {facts.length > 0 && (
        <Section title="Run environment">
          <Facts facts={facts} />
        </Section>
      )}
      {notices.length > 0 && (
        <Section title="About this trace" tip="Notices about this trace that matter for trusting the numbers">
          <DiagnosticsList items={notices} />
        </Section>
      )}
    </>
  );
}
