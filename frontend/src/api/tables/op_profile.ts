// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const OP_PROFILE = {
  page: {
    tables: {
      nodes: table(
        'nodes',
        {
          name: 'text',
          kind: 'text',
          parent: 'number',
          n_children: 'number',
          self_time_ps: 'number',
          time_fraction: 'number',
          wasted_ps: 'number',
          n_occurrences: 'number',
          avg_time_ps: 'number',
          flops: 'number',
          model_flops: 'number',
          flop_rate_flops_per_s: 'number',
          flops_fraction: 'number',
          hbm_bytes: 'number',
          hbm_bytes_per_s: 'number',
          hbm_fraction: 'number',
          on_chip_read_fraction: 'number',
          on_chip_write_fraction: 'number',
          program: 'text',
          provenance: 'text',
          is_fusion: 'bool',
        },
        {},
      ),
    },
    scalars: {
      busy_ps: scalar('busy_ps', false),
      idle_fraction: scalar('idle_fraction', false),
      flops_fraction: scalar('flops_fraction', false),
      hbm_fraction: scalar('hbm_fraction', false),
      flop_rate_flops_per_s: scalar('flop_rate_flops_per_s', false),
    },
  },
  op: {
    tables: {
      facts: table(
        'facts',
        {
          name: 'text',
          value: 'text',
        },
        {},
      ),
      shapes: table(
        'shapes',
        {
          part: 'text',
          name: 'text',
          shape: 'text',
          layout: 'text',
          size_bytes: 'number',
          padded_bytes: 'number',
          memory: 'text',
        },
        {},
      ),
      padding: table(
        'padding',
        {
          value: 'text',
          dim: 'number',
          role: 'text',
          size: 'number',
          padded: 'number',
          waste_fraction: 'number',
        },
        {},
      ),
      products: table(
        'products',
        {
          name: 'text',
          batch: 'number',
          rows: 'number',
          contracted: 'number',
          columns: 'number',
          fill_fraction: 'number',
          padding: 'text',
        },
        {},
      ),
      contents: table(
        'contents',
        {
          name: 'text',
          opcode: 'text',
          shape: 'text',
          flops: 'number',
          estimated_fraction: 'number',
          provenance: 'text',
        },
        {},
      ),
      stack: table(
        'stack',
        {
          place: 'text',
          function: 'text',
        },
        {},
      ),
      source_lines: table(
        'source_lines',
        {
          line: 'number',
          code: 'text',
          is_place: 'bool',
        },
        {},
      ),
      longest: table(
        'longest',
        {
          host: 'text',
          event: 'number',
          start_ps: 'number',
          duration_ps: 'number',
        },
        {},
      ),
    },
    scalars: {
      self_time_ps: scalar('self_time_ps', false),
      fraction: scalar('fraction', false),
      n_occurrences: scalar('n_occurrences', false),
      avg_time_ps: scalar('avg_time_ps', false),
      flops: scalar('flops', false),
      n_bytes: scalar('n_bytes', false),
      flop_rate_flops_per_s: scalar('flop_rate_flops_per_s', false),
      flops_fraction: scalar('flops_fraction', false),
      hbm_bytes_per_s: scalar('hbm_bytes_per_s', false),
      hbm_fraction: scalar('hbm_fraction', false),
      intensity_flops_per_byte: scalar('intensity_flops_per_byte', false),
    },
  },
};
