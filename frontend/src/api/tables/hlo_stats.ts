// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const HLO_STATS = {
  page: {
    tables: {
      ops: table(
        'ops',
        {
          rank: 'number',
          program: 'text',
          category: 'text',
          op: 'text',
          expression: 'text',
          provenance: 'text',
          n_occurrences: 'number',
          total_time_ps: 'number',
          avg_time_ps: 'number',
          total_self_time_ps: 'number',
          avg_self_time_ps: 'number',
          self_fraction: 'number',
          cumulative_fraction: 'number',
          dma_stall_fraction: 'number',
          flop_rate_flops_per_s: 'number',
          normalized_flops_per_s: 'number',
          memory_bandwidth_bytes_per_s: 'number',
          hbm_bytes_per_s: 'number',
          operational_intensity_flops_per_byte: 'number',
          all_memories_flops_per_byte: 'number',
          bound_by: 'text',
          nearest_limit: 'text',
          is_rematerialized: 'bool',
          is_outside_compiled: 'bool',
          source: 'text',
          core: 'text',
          energy_j: 'number',
        },
        {
          device_time_fraction: 'number',
          thread_time_ps: 'number',
          n_threads: 'number',
          cmem_read_bytes_per_s: 'number',
          cmem_write_bytes_per_s: 'number',
          vmem_read_bytes_per_s: 'number',
          vmem_write_bytes_per_s: 'number',
        },
      ),
      by_category: table(
        'by_category',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
      by_op: table(
        'by_op',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
      by_bound: table(
        'by_bound',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
      by_source: table(
        'by_source',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
      by_program: table(
        'by_program',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
      by_rematerialized: table(
        'by_rematerialized',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
      by_outside: table(
        'by_outside',
        {
          name: 'text',
          self_time_ps: 'number',
          fraction: 'number',
        },
        {},
      ),
    },
    scalars: {
      busy_ps: scalar('busy_ps', false),
      idle_fraction: scalar('idle_fraction', false),
      n_ops: scalar('n_ops', false),
      n_occurrences: scalar('n_occurrences', false),
      rematerialized_fraction: scalar('rematerialized_fraction', false),
    },
  },
};
