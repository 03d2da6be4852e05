/** Tables of transfers between slices as the page shows them. Pure. */
import type { RowsOf } from '../../api/declared';
import { MEGASCALE_STATS } from '../../api/tables/megascale_stats';
import type { StepSeries } from '../../widgets/step_chart';

export const { tables: TABLES } = MEGASCALE_STATS.page;
export type Rendezvous = RowsOf<typeof TABLES.rendezvous>;
export type Hosts = RowsOf<typeof TABLES.hosts>;

/** The four operations of a transfer, in their order, with the color of each. */
const HALVES = [
  { name: 'send_ps', token: '--c-d2d' },
  { name: 'send_done_ps', token: '--q-4' },
  { name: 'recv_ps', token: '--q-6' },
  { name: 'recv_done_ps', token: '--c-collective' },
] as const;

/** The most rows that are bars; all are in the table. */
export const MOST_BARS = 60;

/** Columns that the chart shows already, and those that only a closer look needs. */
export const HIDDEN = [
  ...HALVES.map(({ name }) => name),
  'observed_bytes_per_s',
  'n_cores',
  'send_op',
  'recv_op',
];

/** Stall by operation; `times`: by what each row's mean is multiplied. */
export function stallSeries(rows: Rendezvous | Hosts, times: (row: number) => number): StepSeries[] {
  const shown = Array.from({ length: Math.min(rows.length, MOST_BARS) }, (_, row) => row);
  return HALVES.map(({ name, token }) => {
    const mean = rows.number(name);
    const values = shown.map((row) => {
      const value = mean(row);
      return value === null ? null : value * times(row);
    });
    return { name, title: rows.title(name), token, values };
  });
}

/** The timeline's search for the operation that ends a transfer. */
export function searchOf(rows: Rendezvous, row: number): Record<string, string> | null {
  const op = rows.text('recv_op')(row);
  return op ? { q: op } : null;
}
