// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const FRAMEWORK_OP_STATS = {
  page: {
    tables: {
      ops: table(
        'ops',
        {
          rank: 'number',
          host_or_device: 'text',
          type: 'text',
          operation: 'text',
          n_occurrences: 'number',
          total_time_ps: 'number',
          avg_time_ps: 'number',
          total_self_time_ps: 'number',
          avg_self_time_ps: 'number',
          device_self_fraction: 'number',
          device_cumulative_fraction: 'number',
          host_self_fraction: 'number',
          host_cumulative_fraction: 'number',
          flop_rate_flops_per_s: 'number',
          compute_fraction: 'number',
          memory_bandwidth_bytes_per_s: 'number',
          operational_intensity_flops_per_byte: 'number',
          bound_by: 'text',
          nearest_limit: 'text',
          tensor_core_fraction: 'number',
          eager: 'text',
        },
        {
          input_shapes: 'text',
          call_stack: 'text',
        },
      ),
      device_by_type: table(
        'device_by_type',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
      device_by_op: table(
        'device_by_op',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
      host_by_type: table(
        'host_by_type',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
      host_by_op: table(
        'host_by_op',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
    },
    scalars: {
      device_ops_ps: scalar('device_ops_ps', true),
      device_copies_ps: scalar('device_copies_ps', true),
      device_idle_ps: scalar('device_idle_ps', true),
      n_device_ops: scalar('n_device_ops', true),
      host_ops_ps: scalar('host_ops_ps', true),
      host_idle_ps: scalar('host_idle_ps', true),
      n_host_ops: scalar('n_host_ops', true),
    },
  },
};
