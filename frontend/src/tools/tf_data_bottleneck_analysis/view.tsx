/**
 * tf.data from top to bottom: tiles, pipelines, the graph of one call, estimated gains, advice; a stage's
 * details at the right.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readTable, readTiles } from '../../api/declared';
import { TF_DATA_BOTTLENECK_ANALYSIS } from '../../api/tables/tf_data_bottleneck_analysis';
import type { Payload } from '../../api/types';
import { format, plural } from '../../base/units';
import { RichText } from '../../widgets/rich_text';
import { DiagnosticsList, noticesOf, Message } from '../../widgets/states';
import { Section, Tiles } from '../../widgets/summary';
import type { ToolProps } from '../tool';
import { Drawer } from './drawer';
import { Graph } from './graph';
import {
  adviceOf,
  aheadText,
  badgeOf,
  chosenOf,
  executionLabel,
  executionsOf,
  graphOf,
  typicalRankOf,
  whatIfOf,
  type Chosen,
  type Execution,
  type Graph as GraphData,
} from './model';
import { Pipelines } from './pipelines';
import './style.css';
import { WhatIf } from './what_if';

type LinkProps = Pick<ToolProps, 'params' | 'setParams'>;

/** The calls of the pipeline by time: one is shown. */
function RankChooser({
  calls,
  rank,
  typicalRank,
  setParams,
}: { calls: readonly Execution[]; rank: number; typicalRank: number | null } & Pick<
  LinkProps,
  'setParams'
>): VNode | null {
  if (calls.length < 2) return null;
  const index = calls.findIndex((call) => call.rank === rank);
  const go = (to: number): void => setParams({ rank: to === typicalRank ? undefined : String(to) }, 'push');
  const step = (by: number, label: string, sign: string): VNode => {
    const to = calls[index + by];
    return (
      <button
        type="button"
        class="button small"
        aria-label={label}
        data-tip={label}
        disabled={!to}
        onClick={() => to && go(to.rank)}
      >
        {sign}
      </button>
    );
  };
  return (
    <span class="rank-chooser">
      <label>
        Call{' '}
        <select
          class="field"
          aria-label="Call, slowest first"
          value={String(rank)}
          onChange={(event) => go(Number(event.currentTarget.value))}
        >
          {calls.map((call) => (
            <option key={call.rank} value={String(call.rank)}>
              {executionLabel(call, calls.length, typicalRank)}
            </option>
          ))}
        </select>
      </label>
      {step(-1, 'Slower call', '‹')}
      {step(1, 'Faster call', '›')}
    </span>
  );
}

function Key({ badge }: { badge: string | null }): VNode {
  return (
    <ul class="graph-key" aria-label="Meaning of outlines">
      <li>
        <i class="critical" /> critical path
      </li>
      {badge && (
        <li>
          <i class={badge} /> {badge === 'bottleneck' ? badge : `${badge} stage`}
        </li>
      )}
      <li>
        <i class="aside" /> not waited for
      </li>
    </ul>
  );
}

function GraphSection({
  payload,
  graph,
  chosen,
  params,
  setParams,
}: { payload: Payload; graph: GraphData; chosen: Chosen } & LinkProps): VNode {
  const calls = useMemo(() => executionsOf(payload), [payload]);
  const stage = params['stage'] === undefined ? null : Number(params['stage']);
  const where = [
    payload.hosts.length > 1 || chosen.host ? chosen.host : '',
    chosen.pipeline,
    format(chosen.durationPs, 'ps'),
  ]
    .filter(Boolean)
    .join(' · ');
  const badge = badgeOf(payload.verdict?.level);
  const end = (
    <RankChooser
      calls={calls}
      rank={chosen.rank}
      typicalRank={typicalRankOf(payload)}
      setParams={setParams}
    />
  );
  return (
    <Section
      title="Pipeline graph"
      tip="Stages that worked for the call shown; elements flow from producers to consumers, and the critical path is highlighted"
      note={where}
      end={end}
    >
      {graph.stages.length ? (
        <>
          <Graph
            key={`${chosen.host}\n${chosen.pipeline}`}
            graph={graph}
            badge={badge}
            chosen={stage}
            onChoose={(id) => setParams({ stage: id === null ? undefined : String(id) }, 'push')}
            view={params['view']}
            onView={(view) => setParams({ view }, 'replace')}
          />
          <div class="graph-foot">
            <Key badge={graph.stages.some(({ isBottleneck }) => isBottleneck) ? badge : null} />
            <p class="muted">
              Data flows upward; the training loop calls the top stage. Click a stage for details.
            </p>
          </div>
        </>
      ) : (
        <p class="muted prose">
          No iterator of this call was traced. Capture with host_tracer_level ≥ 2 to see the stages.
        </p>
      )}
    </Section>
  );
}

function Advice({ items }: { items: readonly string[] }): VNode | null {
  if (!items.length) return null;
  return (
    <Section title="What to change" note={items.length > 1 ? 'biggest gain first' : ''}>
      <ol class="tf-data-advice">
        {items.map((text, i) => (
          <li key={i}>
            <RichText text={text} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

function Nothing(): VNode {
  return (
    <Message title="This trace has no tf.data iterators.">
      <p>
        Either the job reads its data without tf.data, or the profile was captured without host events, or no
        batch was requested during the capture.
      </p>
      <p>
        <RichText text="Capture again while steps run, with `host_tracer_level=2`, for at least a few steps." />
      </p>
    </Message>
  );
}

export function TfDataView({ payload, params, setParams }: { payload: Payload } & LinkProps): VNode {
  const { tables: TABLES } = TF_DATA_BOTTLENECK_ANALYSIS.page;
  const pipelines = readTable(payload, TABLES.pipelines).table;
  const estimates = readTable(payload, TABLES.what_if).table;
  const chosen = useMemo(() => chosenOf(payload), [payload]);
  const graph = useMemo(() => graphOf(payload), [payload]);
  const whatIf = useMemo(() => whatIfOf(payload), [payload]);
  const stage = graph.stages.find(({ id }) => String(id) === params['stage']);
  const close = (): void => setParams({ stage: undefined }, 'push');
  const notices = noticesOf(payload.diagnostics);
  if (!pipelines.n_rows) return <Nothing />;
  return (
    <>
      <Tiles tiles={readTiles(payload)} />
      <Pipelines payload={payload} table={pipelines} chosen={chosen} params={params} setParams={setParams} />
      <div class={stage ? 'tf-data has-drawer' : 'tf-data'}>
        <div class="tool-page">
          {chosen && <GraphSection {...{ payload, graph, chosen, params, setParams }} />}
          {whatIf && <WhatIf data={whatIf} title={estimates.title} note={estimates.note} />}
          <Advice items={adviceOf(payload)} />
        </div>
        {stage && chosen && (
          <Drawer
            stage={stage}
            ahead={aheadText(graph, stage)}
            badge={badgeOf(payload.verdict?.level)}
            call={chosen}
            onClose={close}
          />
        )}
      </div>
      {notices.length > 0 && (
        <Section
          title="About this trace"
          tip="Notices about this trace that matter for trusting the numbers"
          note={plural(notices.length, 'note')}
        >
          <DiagnosticsList items={notices} />
        </Section>
      )}
    </>
  );
}
