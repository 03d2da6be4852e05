// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const SAVED_PAGES = {
  page: {
    tables: {
      steps: table(
        'steps',
        {
          host: 'text',
          step: 'text',
        },
        {
          device_compute_ps: 'number',
          compute_ps: 'number',
          collectives_ps: 'number',
          device_to_device_ps: 'number',
          host_to_device_ps: 'number',
          input_ps: 'number',
          output_ps: 'number',
          host_compute_ps: 'number',
          host_prepare_ps: 'number',
          host_compile_ps: 'number',
          idle_ps: 'number',
          other_ps: 'number',
          input_fraction: 'number',
        },
      ),
      top_operations: table(
        'top_operations',
        {
          host: 'text',
          operation: 'text',
        },
        {
          type: 'text',
          time_fraction: 'number',
          cumulative_fraction: 'number',
          flop_rate: 'number',
        },
      ),
      operations: table(
        'operations',
        {
          host: 'text',
          operation: 'text',
        },
        {
          place: 'text',
          type: 'text',
          occurrences: 'number',
          total_time_ps: 'number',
          self_time_ps: 'number',
          device_fraction: 'number',
          host_fraction: 'number',
          flop_rate: 'number',
          bandwidth: 'number',
          intensity: 'number',
          bound_by: 'text',
        },
      ),
      input_operations: table(
        'input_operations',
        {
          host: 'text',
          operation: 'text',
        },
        {
          category: 'text',
          occurrences: 'number',
          total_time_ps: 'number',
          total_fraction: 'number',
          self_time_ps: 'number',
          self_fraction: 'number',
        },
      ),
      kernels: table(
        'kernels',
        {
          host: 'text',
          kernel: 'text',
        },
        {
          operation: 'text',
          occurrences: 'number',
          total_time_ps: 'number',
          min_time_ps: 'number',
          max_time_ps: 'number',
          registers: 'number',
          static_shared_bytes: 'number',
          dynamic_shared_bytes: 'number',
          grid: 'text',
          block: 'text',
        },
      ),
      cores: table(
        'cores',
        {
          host: 'text',
          step: 'text',
          core: 'text',
        },
        {
          core_host: 'text',
          chip: 'text',
          node: 'text',
          replica: 'text',
          total_ps: 'number',
          compute_ps: 'number',
          low_flops_ps: 'number',
          infeed_ps: 'number',
          outfeed_ps: 'number',
          all_reduce_ps: 'number',
          synchronization_ps: 'number',
          send_ps: 'number',
          receive_ps: 'number',
          bottleneck: 'text',
        },
      ),
      collectives: table(
        'collectives',
        {
          host: 'text',
          step: 'text',
          operation: 'text',
        },
        {
          occurrences: 'number',
          duration_ps: 'number',
          data_bytes: 'number',
          description: 'text',
        },
      ),
      links: table(
        'links',
        {
          host: 'text',
          step: 'text',
          channel: 'text',
        },
        {
          from_core: 'text',
          to_core: 'text',
          occurrences: 'number',
          duration_ps: 'number',
          send_delay_ps: 'number',
          data_bytes: 'number',
          operations: 'text',
        },
      ),
      op_profile: table(
        'op_profile',
        {
          host: 'text',
          depth: 'number',
          name: 'text',
        },
        {
          category: 'text',
          framework_op: 'text',
          time_fraction: 'number',
          flops_fraction: 'number',
          expression: 'text',
        },
      ),
      memories: table(
        'memories',
        {
          host: 'text',
          memory: 'text',
        },
        {
          peak_bytes: 'number',
          lifetime_peak_bytes: 'number',
          peak_time_ps: 'number',
          heap_bytes: 'number',
          stack_bytes: 'number',
          free_bytes: 'number',
          capacity_bytes: 'number',
          fragmentation: 'number',
          snapshots: 'number',
        },
      ),
      allocations: table(
        'allocations',
        {
          host: 'text',
          memory: 'text',
        },
        {
          operation: 'text',
          occurrences: 'number',
          allocated_bytes: 'number',
          requested_bytes: 'number',
          region: 'text',
          data_type: 'text',
          shape: 'text',
        },
      ),
      facts: table(
        'facts',
        {
          host: 'text',
          page: 'text',
          name: 'text',
          value: 'text',
        },
        {},
      ),
      advice: table(
        'advice',
        {
          host: 'text',
          page: 'text',
          advice: 'text',
        },
        {},
      ),
      pages: table(
        'pages',
        {
          host: 'text',
          page: 'text',
          file: 'text',
          n_facts: 'number',
          n_rows: 'number',
        },
        {},
      ),
    },
    scalars: {
      n_pages: scalar('n_pages', false),
      n_steps: scalar('n_steps', true),
      step_time_ps: scalar('step_time_ps', true),
      input_fraction: scalar('input_fraction', true),
    },
  },
};
