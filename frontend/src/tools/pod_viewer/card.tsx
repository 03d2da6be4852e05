/** What is known of one core: its place, its step, what that went into, its links and its group. */
import type { VNode } from 'preact';
import { numberColumn, rowOf, rowsOf } from '../../api/table';
import type { Table } from '../../api/types';
import { categoryToken } from '../../base/color';
import { format, plural } from '../../base/units';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { Facts, StackBar } from '../../widgets/summary';
import type { Core, Link } from './model';

const MOST_LINKS = 6;

interface CardProps {
  cores: readonly Core[];
  table: Table;
  parts: Table | undefined;
  channels: Table | undefined;
  links: readonly Link[];
  core: number;
  step: string;
}

function LinkList({
  channels,
  links,
  core,
}: {
  channels: Table;
  links: readonly Link[];
  core: number;
}): VNode | null {
  const mine = links.filter(({ source, target }) => source === core || target === core);
  if (!mine.length) return null;
  return (
    <>
      <h4>{plural(mine.length, 'link')}</h4>
      <ul>
        {mine.slice(0, MOST_LINKS).map(({ row, source }) => {
          const link = rowOf(channels, row);
          const numbers = [
            format(link['size_bytes'] as number | null, 'bytes'),
            format(link['latency_ps'] as number | null, 'ps'),
            format(link['bytes_per_s'] as number | null, 'bytes_per_s'),
          ];
          return (
            <li key={row}>
              <b>{source === core ? `to ${String(link['target'])}` : `from ${String(link['source'])}`}</b>{' '}
              {numbers.join(' · ')} <code>{String(link['ops'] ?? '')}</code>
            </li>
          );
        })}
        {mine.length > MOST_LINKS && (
          <li>… {plural(mine.length - MOST_LINKS, 'more', 'more')} in the table</li>
        )}
      </ul>
    </>
  );
}

export function CoreCard({ cores, table, parts, channels, links, core, step }: CardProps): VNode {
  const found = cores[core];
  if (!found || core >= table.n_rows)
    return <p class="pod-hint">Hover over a core for its step, links and group; click to pin it.</p>;
  const row = rowOf(table, core);
  const total = (row['total_ps'] as number | null) || 1;
  const stack = rowsOf(parts).map((part) => {
    const spent = (row[String(part['column'])] as number | null) ?? 0;
    return {
      title: String(part['category']),
      fraction: spent / total,
      token: categoryToken(String(part['color'])),
      tip: `${String(part['category'])}: ${format(spent, 'ps')}`,
      spent,
    };
  });
  const facts = [
    { name: 'Host', value: found.host },
    {
      name: 'Chip',
      value:
        found.chipId === null ? String(found.chip) : `${found.chip} of the host, ${found.chipId} of the pod`,
    },
    { name: numberColumn(table, 'total_ps')?.title ?? 'Step time', value: format(total, 'ps') },
    { name: 'Own time', value: format(row['own_ps'] as number | null, 'ps') },
    // All parts of the run, also where this core has none: rows that come and go would be laid out anew under
    // the pointer.
    ...stack.map(({ title, spent, fraction }) => ({
      name: title,
      value: `${format(spent, 'ps')} · ${format(fraction, 'fraction')}`,
    })),
  ];
  return (
    <>
      <h3>{found.name}</h3>
      {step && <small>{step}</small>}
      <StackBar parts={stack} label={`Parts of the step of ${found.name}`} />
      <Facts facts={facts} />
      {channels && <LinkList channels={channels} links={links} core={core} />}
      {canOpen('trace_viewer') && (
        <button
          type="button"
          class="button small"
          onClick={() => openTool('trace_viewer', { hosts: found.host })}
        >
          Timeline of the host
        </button>
      )}
    </>
  );
}
