// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const GRAPH_VIEWER = {
  page: {
    tables: {
      nodes: table(
        'nodes',
        {
          node: 'number',
          name: 'text',
          opcode: 'text',
          op_class: 'text',
          kind: 'text',
          shape: 'text',
          frame: 'number',
          is_frame: 'bool',
          depth: 'number',
          n_hidden_operands: 'number',
          n_hidden_users: 'number',
          calls: 'text',
          expression: 'text',
        },
        {
          time_ps: 'number',
          time_fraction: 'number',
          n_occurrences: 'number',
          op_name: 'text',
          op_type: 'text',
          source: 'text',
          stack: 'text',
        },
      ),
      edges: table(
        'edges',
        {
          from: 'number',
          to: 'number',
          operand: 'number',
          shape: 'text',
        },
        {},
      ),
      hot: table(
        'hot',
        {
          name: 'text',
          opcode: 'text',
          op_class: 'text',
          shape: 'text',
          op_name: 'text',
          computation: 'text',
        },
        {
          time_ps: 'number',
          time_fraction: 'number',
          n_occurrences: 'number',
        },
      ),
      computations: table(
        'computations',
        {
          name: 'text',
          n_instructions: 'number',
          is_fusion: 'bool',
          callers: 'text',
        },
        {},
      ),
      programs: table(
        'programs',
        {
          program: 'text',
          program_id: 'text',
          hlo_bytes: 'number',
          time_ps: 'number',
        },
        {},
      ),
      chosen: table(
        'chosen',
        {
          program: 'text',
          op: 'text',
          computation: 'text',
          callers: 'text',
          entry: 'text',
        },
        {},
      ),
    },
    scalars: {
      n_instructions: scalar('n_instructions', false),
      n_computations: scalar('n_computations', false),
      program_time_ps: scalar('program_time_ps', true),
      op_time_ps: scalar('op_time_ps', true),
      n_cut: scalar('n_cut', false),
      center: scalar('center', false),
    },
  },
  search: {
    tables: {
      matches: table(
        'matches',
        {
          name: 'text',
          opcode: 'text',
          op_class: 'text',
          shape: 'text',
          op_name: 'text',
          computation: 'text',
        },
        {
          time_ps: 'number',
          time_fraction: 'number',
          n_occurrences: 'number',
        },
      ),
    },
    scalars: {
    },
  },
  text: {
    tables: {
      lines: table(
        'lines',
        {
          line: 'number',
          text: 'text',
        },
        {},
      ),
    },
    scalars: {
      n_lines: scalar('n_lines', false),
      op_line: scalar('op_line', false),
    },
  },
};
