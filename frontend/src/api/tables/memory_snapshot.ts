// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const MEMORY_SNAPSHOT = {
  page: {
    tables: {
      growth: table(
        'growth',
        {
          place: 'text',
          before_bytes: 'number',
          after_bytes: 'number',
          growth_bytes: 'number',
          growth_n_blocks: 'number',
        },
        {},
      ),
      places: table(
        'places',
        {
          place: 'text',
          size_bytes: 'number',
          fraction: 'number',
          n_blocks: 'number',
        },
        {},
      ),
      kinds: table(
        'kinds',
        {
          device: 'text',
          kind: 'text',
          size_bytes: 'number',
          fraction: 'number',
          n_blocks: 'number',
        },
        {},
      ),
      pools: table(
        'pools',
        {
          device: 'text',
          reserved_bytes: 'number',
          used_bytes: 'number',
          free_bytes: 'number',
          largest_free_bytes: 'number',
          rounding_bytes: 'number',
        },
        {},
      ),
      functions: table(
        'functions',
        {
          function: 'text',
          file: 'text',
          size_bytes: 'number',
          own_bytes: 'number',
          n_blocks: 'number',
          fraction: 'number',
        },
        {},
      ),
      stacks: table(
        'stacks',
        {
          device: 'text',
          kind: 'text',
          size_bytes: 'number',
          fraction: 'number',
          n_blocks: 'number',
          stack: 'text',
        },
        {},
      ),
    },
    scalars: {
      used_bytes: scalar('used_bytes', false),
      n_blocks: scalar('n_blocks', false),
      n_places: scalar('n_places', false),
      unattributed_bytes: scalar('unattributed_bytes', false),
      growth_bytes: scalar('growth_bytes', true),
      reserved_bytes: scalar('reserved_bytes', true),
      free_bytes: scalar('free_bytes', true),
      rounding_bytes: scalar('rounding_bytes', true),
    },
  },
};
