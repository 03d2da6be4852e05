// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const TPU_COMPATIBILITY = {
  page: {
    tables: {
      graphs: table(
        'graphs',
        {
          graph: 'text',
          kind: 'text',
          size_bytes: 'number',
          is_shown: 'bool',
        },
        {},
      ),
      fixes: table(
        'fixes',
        {
          kind: 'text',
          n_ops: 'number',
          ops: 'text',
          fix: 'text',
        },
        {},
      ),
      scopes: table(
        'scopes',
        {
          path: 'text',
          function: 'text',
          valid_fraction: 'number',
          n_invalid: 'number',
          n_valid: 'number',
          n_not_checked: 'number',
          name: 'text',
          parent: 'number',
        },
        {},
      ),
      incompatible: table(
        'incompatible',
        {
          op: 'text',
          name: 'text',
          scope: 'text',
          function: 'text',
          reason: 'text',
          kind: 'text',
          fix: 'text',
        },
        {},
      ),
      by_op: table(
        'by_op',
        {
          op: 'text',
          status: 'text',
          n_ops: 'number',
          fraction: 'number',
          reason: 'text',
          fix: 'text',
        },
        {},
      ),
      not_checked: table(
        'not_checked',
        {
          reason: 'text',
          n_ops: 'number',
        },
        {},
      ),
    },
    scalars: {
      valid_fraction: scalar('valid_fraction', false),
      n_invalid: scalar('n_invalid', false),
      n_valid: scalar('n_valid', false),
      n_not_checked: scalar('n_not_checked', false),
      n_ops: scalar('n_ops', false),
    },
  },
  drawing: {
    tables: {
      items: table(
        'items',
        {
          kind: 'text',
          name: 'text',
          op: 'text',
          frame: 'number',
          scope: 'number',
          is_open: 'bool',
          n_valid: 'number',
          n_invalid: 'number',
          n_not_checked: 'number',
          reason: 'text',
          fix: 'text',
          node: 'number',
        },
        {},
      ),
      edges: table(
        'edges',
        {
          from: 'number',
          to: 'number',
          n: 'number',
          is_call: 'bool',
        },
        {},
      ),
    },
    scalars: {
      n_items: scalar('n_items', false),
      n_rest: scalar('n_rest', false),
      n_cut: scalar('n_cut', false),
    },
  },
  node: {
    tables: {
      node: table(
        'node',
        {
          name: 'text',
          op: 'text',
          function: 'text',
          device: 'text',
        },
        {},
      ),
      attributes: table(
        'attributes',
        {
          name: 'text',
          kind: 'text',
          value: 'text',
        },
        {},
      ),
      inputs: table(
        'inputs',
        {
          input: 'text',
        },
        {},
      ),
    },
    scalars: {
    },
  },
};
