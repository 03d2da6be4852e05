/**
 * tf.data: the payload's tables become pipelines to choose from, the stages of one call, and estimated gains
 * of changes. Pure.
 */
import { readNumber, readTable, type RowOf } from '../../api/declared';
import { TF_DATA_BOTTLENECK_ANALYSIS } from '../../api/tables/tf_data_bottleneck_analysis';
import type { Payload } from '../../api/types';
import { format, formatRange } from '../../base/units';

const { tables: TABLES, scalars: SCALARS } = TF_DATA_BOTTLENECK_ANALYSIS.page;

export interface PipelineName {
  host: string;
  pipeline: string;
}

export function pipelinesOf(payload: Payload): PipelineName[] {
  return readTable(payload, TABLES.pipelines)
    .all()
    .map(({ host, pipeline }) => ({ host, pipeline }));
}

/**
 * The value of the parameter `pipeline` for a row: with its host if several hosts have a pipeline of that
 * name.
 */
export function pipelineParam(all: readonly PipelineName[], row: number): string | undefined {
  const one = all[row];
  if (!one) return undefined;
  const isShared = all.filter(({ pipeline }) => pipeline === one.pipeline).length > 1;
  return isShared ? `${one.host}/${one.pipeline}` : one.pipeline;
}

/** The call that the graph shows. */
export interface Chosen extends PipelineName {
  rank: number;
  startPs: number | null;
  durationPs: number | null;
}

export function chosenOf(payload: Payload): Chosen | null {
  const row = readTable(payload, TABLES.chosen).all()[0];
  if (!row) return null;
  return {
    host: row.host,
    pipeline: row.pipeline,
    rank: row.rank ?? 1,
    startPs: row.start_ps,
    durationPs: row.duration_ps,
  };
}

export interface Execution {
  rank: number;
  durationPs: number | null;
  /** Its producers' work is inside the capture, too. */
  isComplete: boolean;
}

export function executionsOf(payload: Payload): Execution[] {
  return readTable(payload, TABLES.executions)
    .all()
    .map((row, i) => ({
      rank: row.rank ?? i + 1,
      durationPs: row.duration_ps,
      isComplete: row.is_complete,
    }));
}

/** A call's label in the list: its rank, its length, and anything special about it. */
export function executionLabel(
  { rank, durationPs, isComplete }: Execution,
  n: number,
  typicalRank: number | null,
): string {
  const special = isComplete ? (rank === typicalRank ? ' · typical' : '') : ' · cut by the capture';
  return `${rank} of ${n} · ${format(durationPs, 'ps')}${special}`;
}

/**
 * The label on the bottleneck's box: if the job does not wait for the pipeline, its largest stage holds
 * nothing up.
 */
export function badgeOf(level: string | undefined): string {
  return level === 'warn' || level === 'bad' ? 'bottleneck' : 'largest';
}

/** For a stage that took longer than its consumer: the reason. Empty for others. */
export function aheadText({ stages }: Graph, stage: Stage): string {
  const consumer = stages.find(({ id }) => id === stage.parent);
  if (!consumer || (stage.totalPs ?? 0) <= (consumer.totalPs ?? 0)) return '';
  return `Its total exceeds that of ${consumer.name}, its consumer: it ran ahead or on several threads.`;
}

/** A stage of a call: an iterator, or the equal iterators that one stage created. */
export interface Stage {
  id: number;
  name: string;
  longName: string;
  startPs: number | null;
  totalPs: number | null;
  selfPs: number | null;
  nCalls: number | null;
  nIterators: number;
  isCritical: boolean;
  isBottleneck: boolean;
  isAsync: boolean;
  parent: number;
  parameters: [string, string][];
}

interface Link {
  from: number;
  to: number;
  isCritical: boolean;
}

export interface Graph {
  stages: Stage[];
  links: Link[];
}

/** "parallelism=1, autotune=true" as pairs; a part without "=" is a flag that is on. */
export function parametersOf(joined: string): [string, string][] {
  return joined
    .split(/,\s*/)
    .filter(Boolean)
    .map((part) => {
      const equals = part.indexOf('=');
      return equals < 0 ? [part, 'yes'] : [part.slice(0, equals).trim(), part.slice(equals + 1).trim()];
    });
}

function stageOf(row: RowOf<typeof TABLES.nodes>, i: number): Stage {
  return {
    id: row.node ?? i,
    name: row.name || 'unnamed',
    longName: row.long_name,
    startPs: row.start_ps,
    totalPs: row.duration_ps,
    selfPs: row.self_time_ps,
    nCalls: row.n_calls,
    nIterators: row.n_iterators ?? 1,
    isCritical: row.is_blocking,
    isBottleneck: row.is_bottleneck,
    isAsync: row.is_async,
    parent: row.parent ?? -1,
    parameters: parametersOf(row.parameters),
  };
}

/** Stages and the links between existing ones: links to missing stages are left out. */
export function graphOf(payload: Payload): Graph {
  const stages = readTable(payload, TABLES.nodes).all().map(stageOf);
  const stageIds = new Set(stages.map(({ id }) => id));
  const links = readTable(payload, TABLES.edges)
    .all()
    .map((row) => ({ from: row.from ?? -1, to: row.to ?? -1, isCritical: row.is_critical }));
  return { stages, links: links.filter(({ from, to }) => stageIds.has(from) && stageIds.has(to)) };
}

/** Screen-reader text of a stage. */
export function stageLabel(stage: Stage, badge = 'bottleneck'): string {
  const parts = [`${stage.name}: self ${format(stage.selfPs, 'ps')}, total ${format(stage.totalPs, 'ps')}`];
  if (stage.nIterators > 1) parts.push(`${stage.nIterators} iterators`);
  parts.push(stage.isCritical ? 'on the critical path' : 'not on the critical path');
  if (stage.isAsync) parts.push('prefetches');
  if (stage.isBottleneck) parts.push(badge);
  return parts.join(', ');
}

/** The stage that holds the call up: the one to start with. */
export function mainStage({ stages }: Graph): Stage | undefined {
  return stages.find(({ isBottleneck }) => isBottleneck) ?? stages[0];
}

/**
 * The window of the trace viewer that shows a stage: the call, from the stage's own start if it began
 * earlier.
 */
export function stretchOf(
  { startPs, durationPs }: Chosen,
  stage: Stage,
): { start_ps: string; end_ps: string } | null {
  if (startPs === null || durationPs === null) return null;
  return {
    start_ps: String(Math.round(Math.min(startPs, stage.startPs ?? startPs))),
    end_ps: String(Math.round(startPs + durationPs)),
  };
}

export interface Estimate {
  lowPs: number;
  highPs: number;
  text: string;
}

export interface Change {
  change: string;
  isNow: boolean;
  latency: Estimate | null;
  step: Estimate | null;
  limitedBy: string;
  note: string;
}

export interface WhatIf {
  /** Why nothing can be estimated; empty if something can. */
  reason: string;
  changes: Change[];
  hasSteps: boolean;
  /** The longest interval, for the bars. */
  longestPs: number;
}

function estimateOf(lowPs: number | null, highPs: number | null): Estimate | null {
  return lowPs === null || highPs === null ? null : { lowPs, highPs, text: formatRange(lowPs, highPs, 'ps') };
}

/** Changes with their intervals; changes without any number have only the reason. */
export function whatIfOf(payload: Payload): WhatIf | null {
  const rows = readTable(payload, TABLES.what_if).all();
  if (!rows.length) return null;
  const changes = rows.map((row, i) => ({
    change: row.change,
    isNow: i === 0,
    latency: estimateOf(row.latency_low_ps, row.latency_high_ps),
    step: estimateOf(row.step_low_ps, row.step_high_ps),
    limitedBy: row.limited_by,
    note: row.note,
  }));
  const estimates = changes
    .flatMap(({ latency, step }) => [latency, step])
    .filter((estimate) => estimate !== null);
  const reason = estimates.length
    ? ''
    : changes.map(({ note }) => note).find(Boolean) || 'the trace lacks the data';
  return {
    reason,
    changes,
    hasSteps: changes.some(({ step }) => step !== null),
    longestPs: Math.max(0, ...estimates.map(({ highPs }) => highPs)),
  };
}

export function adviceOf(payload: Payload): string[] {
  return readTable(payload, TABLES.advice)
    .all()
    .map(({ text }) => text)
    .filter(Boolean);
}

/** The rank of the call of median length; null: there is no complete call. */
export function typicalRankOf(payload: Payload): number | null {
  return readNumber(payload, SCALARS.typical_rank);
}
