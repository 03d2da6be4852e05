/**
 * What makes steps slow: step time by cause, and a table of findings that expand into why, what to do, code
 * and evidence.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Payload, Table as PayloadTable } from '../../api/types';
import { format } from '../../base/units';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { CodeBlock } from '../../widgets/code_block';
import { RichText } from '../../widgets/rich_text';
import { Section, StackBar } from '../../widgets/summary';
import { parseView, PLAIN_VIEW, viewChange, type TableColumn } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import type { ToolProps } from '../tool';
import {
  calmText,
  captureText,
  causesOf,
  findingsData,
  findingsOf,
  gainText,
  HIDDEN_COLUMNS,
  openRow,
  type CauseShare,
  type Finding,
} from './findings_model';

const TIMELINE = 'trace_viewer';
const PROSE = ['finding'];
const INITIAL = { ...PLAIN_VIEW, hidden: HIDDEN_COLUMNS };

function Causes({ causes }: { causes: readonly CauseShare[] }): VNode | null {
  if (!causes.length) return null;
  return (
    <div class="causes">
      <StackBar
        parts={causes}
        label={`Step time by cause: ${causes.map(({ title, fraction }) => `${title} ${format(fraction, 'fraction')}`).join(', ')}`}
      />
      <ul aria-label="Causes">
        {causes.map(({ title, token, timePs, fraction, tip }) => (
          <li key={title} data-tip={tip} tabIndex={0}>
            <span class="dot" style={{ background: `var(${token})` }} />
            {title} <b>{format(fraction, 'fraction')}</b> <small>{format(timePs, 'ps')}</small>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Evidence({ finding }: { finding: Finding }): VNode {
  const { evidence, place } = finding;
  return (
    <>
      <RichText text={evidence} />
      {place && canOpen(TIMELINE) && (
        <>
          {evidence && !evidence.endsWith('.') ? ': ' : ' '}
          <button type="button" class="text-link" onClick={() => openTool(TIMELINE, place)}>
            show it on the timeline
          </button>
        </>
      )}
    </>
  );
}

function About({ finding }: { finding: Finding }): VNode {
  return (
    <>
      {finding.meaning}{' '}
      <span class="muted">
        In the documentation: <code>docs/{finding.docs}.md</code>
      </span>
    </>
  );
}

function Opened({ finding }: { finding: Finding }): VNode {
  const { cause, reason, fix, snippet, evidence, place } = finding;
  const capture = captureText(finding);
  const lines: [string, VNode | null][] = [
    ['Why', reason ? <RichText text={reason} /> : null],
    ['What to do', fix ? <RichText text={fix} /> : null],
    ['Capture', capture ? <RichText text={capture} /> : null],
    ['Evidence', evidence || place ? <Evidence finding={finding} /> : null],
    [cause, finding.meaning ? <About finding={finding} /> : null],
  ];
  return (
    <div class="finding" role="group" aria-label={`${cause}: why and what to do`}>
      <dl>
        {lines.map(
          ([name, content]) =>
            content && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{content}</dd>
              </div>
            ),
        )}
      </dl>
      {snippet && <CodeBlock code={snippet} label={`Example for ${cause.toLowerCase()}`} />}
    </div>
  );
}

function cellOf(
  finding: Finding,
  column: TableColumn,
  text: string,
  isOpen: boolean,
): VNode | string | undefined {
  if (column.name === 'finding') return <RichText text={finding.sentence} />;
  if (column.name === 'gain_ps') return gainText(finding.gainLowPs, finding.gainHighPs);
  if (column.name !== 'cause') return undefined;
  return (
    <button type="button" class="finding-name" aria-expanded={isOpen}>
      <span class="mark" aria-hidden="true" />
      <span class="dot" style={{ background: `var(${finding.token})` }} />
      {text}
    </button>
  );
}

type FindingsProps = { payload: Payload; table: PayloadTable; causes: PayloadTable | undefined } & Pick<
  ToolProps,
  'params' | 'setParams'
>;

export function FindingsSection({ payload, table, causes, params, setParams }: FindingsProps): VNode {
  const findings = useMemo(() => findingsOf(payload), [payload]);
  const data = useMemo(() => findingsData(table, findings), [table]);
  const parts = useMemo(() => causesOf(payload), [payload]);
  const view = useMemo(() => parseView(params, INITIAL), [params]);
  const open = openRow(params['finding'], findings.length);
  const toggle = (row: number): void =>
    setParams({ finding: row === open ? undefined : String(row + 1) }, 'replace');
  return (
    <Section title="Findings" note={findings.length ? table.note : (causes?.note ?? '')}>
      <Causes causes={parts} />
      {findings.length ? (
        <div class="findings">
          <Table
            data={data}
            label="Findings"
            prose={PROSE}
            view={view}
            onView={(next, how) => setParams(viewChange(view, next, INITIAL), how)}
            render={(column, row, text) =>
              findings[row] ? cellOf(findings[row], column, text, row === open) : undefined
            }
            barToken={(row) => findings[row]?.token ?? '--c-idle'}
            onRow={toggle}
            chosenRow={open}
            detail={(row) => findings[row] && <Opened finding={findings[row]} />}
          />
        </div>
      ) : (
        <p class="muted">{calmText(parts)}</p>
      )}
    </Section>
  );
}
