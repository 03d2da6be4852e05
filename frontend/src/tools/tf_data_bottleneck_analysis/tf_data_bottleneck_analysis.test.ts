import { describe, expect, it } from 'vitest';
import { TF_DATA_BOTTLENECK_ANALYSIS } from '../../api/tables/tf_data_bottleneck_analysis';
import type { Payload } from '../../api/types';
import { answerOf } from '../testing';
import {
  adviceOf,
  aheadText,
  badgeOf,
  chosenOf,
  executionLabel,
  executionsOf,
  graphOf,
  mainStage,
  parametersOf,
  pipelineParam,
  pipelinesOf,
  stageLabel,
  stretchOf,
  whatIfOf,
  type Stage,
} from './model';

const plain = (text: string | undefined): string | undefined => text?.replaceAll('\u00a0', ' ');

type Cells = (number | string | boolean | null)[];
const answer = (tables: Record<string, Record<string, Cells>> = {}): Payload =>
  answerOf(TF_DATA_BOTTLENECK_ANALYSIS.page, tables);

const nodes = {
  node: [0, 1, 2],
  name: ['Prefetch', 'Map', 'TFRecord'],
  long_name: ['Iterator::Prefetch', 'Iterator::Prefetch::Map', null],
  start_ps: [100, 90, null],
  duration_ps: [7.7e9, 7.6e9, 2e6],
  self_time_ps: [1e8, 6.9e9, 2e6],
  n_calls: [1, 32, 4],
  n_iterators: [1, 1, 4],
  parent: [-1, 0, 1],
  parameters: [null, 'parallelism=1, autotune=true, deterministic', null],
  is_blocking: [true, true, false],
  is_bottleneck: [false, true, false],
  is_async: [true, false, false],
};
const edges = { from: [0, 1, 1], to: [1, 2, 9], is_critical: [true, false, false] };
const graph = graphOf(answer({ nodes, edges }));

describe('the graph of a call', () => {
  it('has stages and the links between those that exist', () => {
    expect(
      graph.stages.map(({ name, isCritical, isBottleneck, isAsync }) => [
        name,
        isCritical,
        isBottleneck,
        isAsync,
      ]),
    ).toEqual([
      ['Prefetch', true, false, true],
      ['Map', true, true, false],
      ['TFRecord', false, false, false],
    ]);
    expect(graph.links).toEqual([
      { from: 0, to: 1, isCritical: true },
      { from: 1, to: 2, isCritical: false },
    ]);
    expect(graphOf(answer())).toEqual({ stages: [], links: [] });
  });
  it('begins with the bottleneck, else with the root', () => {
    expect(mainStage(graph)?.name).toBe('Map');
    expect(mainStage({ ...graph, stages: graph.stages.slice(0, 1) })?.name).toBe('Prefetch');
    expect(mainStage({ stages: [], links: [] })).toBeUndefined();
  });
  it('describes the outlines in words', () => {
    expect(graph.stages.map((stage) => plain(stageLabel(stage)))).toEqual([
      'Prefetch: self 100 µs, total 7.70 ms, on the critical path, prefetches',
      'Map: self 6.90 ms, total 7.60 ms, on the critical path, bottleneck',
      'TFRecord: self 2.00 µs, total 2.00 µs, 4 iterators, not on the critical path',
    ]);
  });
  it('says why a stage can take longer than the one that takes its elements', () => {
    const ahead = graph.stages.map((stage) => ({
      ...stage,
      totalPs: stage.name === 'Map' ? 9e9 : stage.totalPs,
    }));
    expect(ahead.map((stage) => aheadText({ ...graph, stages: ahead }, stage))).toEqual([
      '',
      'Its total exceeds that of Prefetch, its consumer: it ran ahead or on several threads.',
      '',
    ]);
  });
  it('calls the largest stage a bottleneck only where the job waits', () => {
    expect(['good', 'unknown', undefined, 'warn', 'bad'].map(badgeOf)).toEqual([
      'largest',
      'largest',
      'largest',
      'bottleneck',
      'bottleneck',
    ]);
    expect(stageLabel(graph.stages[1] as Stage, badgeOf('good'))).toMatch(/largest$/);
  });
  it('reads parameters', () => {
    expect(graph.stages[1]?.parameters).toEqual([
      ['parallelism', '1'],
      ['autotune', 'true'],
      ['deterministic', 'yes'],
    ]);
    expect(parametersOf('')).toEqual([]);
  });
  it('leads to its stretch in the trace viewer, from where the stage began', () => {
    const call = { host: 'h', pipeline: 'Host:0', rank: 1, startPs: 100, durationPs: 50 };
    expect(stretchOf(call, graph.stages[1] as Stage)).toEqual({ start_ps: '90', end_ps: '150' });
    expect(stretchOf(call, graph.stages[2] as Stage)).toEqual({ start_ps: '100', end_ps: '150' });
    expect(stretchOf({ ...call, startPs: null }, graph.stages[0] as Stage)).toBeNull();
  });
});

describe('pipelines and calls', () => {
  const all = pipelinesOf(
    answer({ pipelines: { host: ['w0', 'w1', 'w0'], pipeline: ['Host:0', 'Host:0', 'Device:0'] } }),
  );
  it('are named with their host where several have one of that name', () =>
    expect([0, 1, 2, 3].map((row) => pipelineParam(all, row))).toEqual([
      'w0/Host:0',
      'w1/Host:0',
      'Device:0',
      undefined,
    ]));
  it('say which is shown', () => {
    expect(
      chosenOf(
        answer({
          chosen: { host: ['w1'], pipeline: ['Host:0'], rank: [3], start_ps: [5], duration_ps: [7] },
        }),
      ),
    ).toEqual({ host: 'w1', pipeline: 'Host:0', rank: 3, startPs: 5, durationPs: 7 });
    expect(chosenOf(answer())).toBeNull();
    expect(
      executionsOf(
        answer({ executions: { rank: [1, 2], duration_ps: [9, null], is_complete: [true, true] } }),
      ),
    ).toEqual([
      { rank: 1, durationPs: 9, isComplete: true },
      { rank: 2, durationPs: null, isComplete: true },
    ]);
  });
  it('are listed with their special properties', () => {
    const calls = executionsOf(
      answer({
        executions: { rank: [1, 2, 3], duration_ps: [9e9, 7e9, 8e9], is_complete: [true, true, false] },
      }),
    );
    expect(calls.map((call) => plain(executionLabel(call, 3, 2)))).toEqual([
      '1 of 3 · 9.00 ms',
      '2 of 3 · 7.00 ms · typical',
      '3 of 3 · 8.00 ms · cut by the capture',
    ]);
  });
});

describe('what a change would gain', () => {
  const columns = {
    change: ['now', '8 in parallel', 'cache'],
    latency_low_ps: [7.7e9, 1.3e9, null],
    latency_high_ps: [7.7e9, 1.6e9, null],
    step_low_ps: [12.4e9, 5.1e9, null],
    step_high_ps: [12.4e9, 5.4e9, null],
    limited_by: [null, 'Batch', null],
    note: [null, null, 'the host was saturated'],
  };
  it('is an interval of the call and of the step', () => {
    const data = whatIfOf(answer({ what_if: columns }));
    expect(data).toMatchObject({ reason: '', hasSteps: true, longestPs: 12.4e9 });
    expect(
      data?.changes.map(({ latency, step, isNow }) => [plain(latency?.text), plain(step?.text), isNow]),
    ).toEqual([
      ['7.70 ms', '12.4 ms', true],
      ['1.30–1.60 ms', '5.10–5.40 ms', false],
      [undefined, undefined, false],
    ]);
    expect(data?.changes[2]?.note).toBe('the host was saturated');
  });
  it('has no step where there are none', () =>
    expect(
      whatIfOf(
        answer({
          what_if: { ...columns, step_low_ps: [null, null, null], step_high_ps: [null, null, null] },
        }),
      )?.hasSteps,
    ).toBe(false));
  it('is a reason where nothing can be estimated', () => {
    expect(
      whatIfOf(
        answer({
          what_if: {
            change: ['now'],
            latency_low_ps: [null],
            latency_high_ps: [null],
            note: ['the trace is cut'],
          },
        }),
      )?.reason,
    ).toBe('the trace is cut');
    expect(
      whatIfOf(answer({ what_if: { change: ['now'], latency_low_ps: [null], latency_high_ps: [null] } }))
        ?.reason,
    ).toBe('the trace lacks the data');
    expect(whatIfOf(answer())).toBeNull();
  });
  it('comes with advice', () =>
    expect(adviceOf(answer({ advice: { text: ['Do `x`', null] } }))).toEqual(['Do `x`']));
});
