// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import { scalar, table } from '../declared';

export const MEGASCALE_STATS = {
  page: {
    tables: {
      rendezvous: table(
        'rendezvous',
        {
          rendezvous: 'text',
          total_stall_ps: 'number',
          stall_fraction: 'number',
          transfer_type: 'text',
          network_bytes: 'number',
          count: 'number',
          stall_ps: 'number',
          send_ps: 'number',
          send_done_ps: 'number',
          recv_ps: 'number',
          recv_done_ps: 'number',
          slack_ps: 'number',
          observed_ps: 'number',
          required_bytes_per_s: 'number',
          host_bytes_per_s: 'number',
          observed_bytes_per_s: 'number',
          n_hosts: 'number',
          n_cores: 'number',
          send_op: 'text',
          recv_op: 'text',
        },
        {},
      ),
      hosts: table(
        'hosts',
        {
          host: 'text',
          send_ps: 'number',
          send_done_ps: 'number',
          recv_ps: 'number',
          recv_done_ps: 'number',
          stall_fraction: 'number',
          count: 'number',
          network_bytes: 'number',
          bytes_per_s: 'number',
          worst: 'text',
        },
        {},
      ),
      slices: table(
        'slices',
        {
          source: 'number',
          target: 'number',
          count: 'number',
          size_bytes: 'number',
          latency_ps: 'number',
          longest_ps: 'number',
          n_untimed: 'number',
        },
        {},
      ),
      queries: table(
        'queries',
        {
          question: 'text',
          sql: 'text',
        },
        {},
      ),
    },
    scalars: {
      stall_fraction: scalar('stall_fraction', false),
      stall_ps: scalar('stall_ps', false),
      n_rendezvous: scalar('n_rendezvous', false),
      n_transfers: scalar('n_transfers', false),
      network_bytes: scalar('network_bytes', false),
      required_bytes_per_s: scalar('required_bytes_per_s', false),
    },
  },
};
