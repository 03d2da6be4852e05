// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const FLAME_GRAPH = {
  page: {
    tables: {
      functions: table(
        'functions',
        {
          name: 'text',
          file: 'text',
          line: 'number',
          package: 'text',
          family: 'text',
          with_calls_ps: 'number',
          waiting_ps: 'number',
          self_ps: 'number',
          total_ps: 'number',
          calls: 'number',
          self_fraction: 'number',
          key: 'text',
        },
        {
          other_self_ps: 'number',
          other_total_ps: 'number',
          other_calls: 'number',
        },
      ),
      nodes: table(
        'nodes',
        {
          thread: 'number',
          parent: 'number',
          name: 'text',
          file: 'text',
          line: 'number',
          package: 'text',
          family: 'text',
          self_ps: 'number',
          total_ps: 'number',
          calls: 'number',
          n_smaller: 'number',
          key: 'text',
        },
        {
          other_self_ps: 'number',
          other_total_ps: 'number',
          other_calls: 'number',
          start_ps: 'number',
          flops: 'number',
          phase: 'text',
        },
      ),
      threads: table(
        'threads',
        {
          name: 'text',
          section: 'text',
          kind: 'text',
          n_threads: 'number',
          busy_ps: 'number',
          busy_fraction: 'number',
          is_shown: 'bool',
          tracks: 'text',
        },
        {},
      ),
      steps: table(
        'steps',
        {
          step: 'text',
          input_ps: 'number',
          rest_ps: 'number',
          is_shown: 'bool',
          is_compared: 'bool',
        },
        {},
      ),
    },
    scalars: {
      step_time_ps: scalar('step_time_ps', false),
      n_steps_shown: scalar('n_steps_shown', false),
      other_step_time_ps: scalar('other_step_time_ps', true),
      n_other_steps: scalar('n_other_steps', true),
      has_scopes: scalar('has_scopes', false),
      has_modules: scalar('has_modules', false),
      yours_ps: scalar('yours_ps', false),
      waiting_ps: scalar('waiting_ps', false),
    },
  },
  function: {
    tables: {
      sides: table(
        'sides',
        {
          side: 'text',
          parent: 'number',
          name: 'text',
          file: 'text',
          line: 'number',
          package: 'text',
          family: 'text',
          total_ps: 'number',
          calls: 'number',
          key: 'text',
        },
        {},
      ),
      longest_calls: table(
        'longest_calls',
        {
          step: 'text',
          host: 'text',
          event: 'number',
          start_ps: 'number',
          duration_ps: 'number',
        },
        {},
      ),
      by_step: table(
        'by_step',
        {
          step: 'text',
          self_ps: 'number',
          total_ps: 'number',
          is_shown: 'bool',
        },
        {},
      ),
    },
    scalars: {
      self_ps: scalar('self_ps', false),
      total_ps: scalar('total_ps', false),
      calls: scalar('calls', false),
      n_calls: scalar('n_calls', false),
    },
  },
};
