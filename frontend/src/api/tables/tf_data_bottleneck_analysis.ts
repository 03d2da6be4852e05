// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const TF_DATA_BOTTLENECK_ANALYSIS = {
  page: {
    tables: {
      pipelines: table(
        'pipelines',
        {
          host: 'text',
          pipeline: 'text',
          kind: 'text',
          bottleneck: 'text',
          bottleneck_long_name: 'text',
          n_calls: 'number',
          n_slow_calls: 'number',
          min_latency_ps: 'number',
          avg_latency_ps: 'number',
          max_latency_ps: 'number',
          wait_fraction: 'number',
        },
        {},
      ),
      chosen: table(
        'chosen',
        {
          host: 'text',
          pipeline: 'text',
          rank: 'number',
          start_ps: 'number',
          duration_ps: 'number',
          bottleneck: 'text',
          bottleneck_long_name: 'text',
          node: 'number',
        },
        {},
      ),
      executions: table(
        'executions',
        {
          rank: 'number',
          start_ps: 'number',
          duration_ps: 'number',
          is_complete: 'bool',
        },
        {},
      ),
      nodes: table(
        'nodes',
        {
          node: 'number',
          iterator_id: 'text',
          name: 'text',
          long_name: 'text',
          start_ps: 'number',
          duration_ps: 'number',
          self_time_ps: 'number',
          n_calls: 'number',
          n_iterators: 'number',
          is_blocking: 'bool',
          is_bottleneck: 'bool',
          is_async: 'bool',
          parent: 'number',
          parameters: 'text',
        },
        {},
      ),
      edges: table(
        'edges',
        {
          from: 'number',
          to: 'number',
          is_critical: 'bool',
        },
        {},
      ),
      what_if: table(
        'what_if',
        {
          change: 'text',
          latency_low_ps: 'number',
          latency_high_ps: 'number',
          step_low_ps: 'number',
          step_high_ps: 'number',
          limited_by: 'text',
          note: 'text',
        },
        {},
      ),
      advice: table(
        'advice',
        {
          text: 'text',
        },
        {},
      ),
    },
    scalars: {
      max_latency_ps: scalar('max_latency_ps', false),
      avg_latency_ps: scalar('avg_latency_ps', false),
      bottleneck_self_ps: scalar('bottleneck_self_ps', false),
      wait_fraction: scalar('wait_fraction', false),
      host_step_time_avg_ps: scalar('host_step_time_avg_ps', false),
      host_input_fraction: scalar('host_input_fraction', false),
      n_pipelines: scalar('n_pipelines', false),
      n_slow_pipelines: scalar('n_slow_pipelines', false),
      rank: scalar('rank', false),
      typical_rank: scalar('typical_rank', false),
      n_executions: scalar('n_executions', false),
    },
  },
};
