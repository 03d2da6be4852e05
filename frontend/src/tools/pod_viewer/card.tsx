/** Details of one core: its place, its step, the parts of the step, its links and its group. */
import type { VNode } from 'preact';
import { categoryToken } from '../../base/color';
import { format, plural } from '../../base/units';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { Facts, StackBar } from '../../widgets/summary';
import type { ChannelRows, Core, CoreRows, Link, PartRows } from './model';

const MOST_LINKS = 6;

interface CardProps {
  cores: readonly Core[];
  rows: CoreRows;
  parts: PartRows;
  /** null: a single core has none. */
  channels: ChannelRows | null;
  links: readonly Link[];
  core: number;
  step: string;
}

function LinkList({
  channels,
  links,
  core,
}: {
  channels: ChannelRows;
  links: readonly Link[];
  core: number;
}): VNode | null {
  const coreLinks = links.filter(({ source, target }) => source === core || target === core);
  if (!coreLinks.length) return null;
  return (
    <>
      <h4>{plural(coreLinks.length, 'link')}</h4>
      <ul>
        {coreLinks.slice(0, MOST_LINKS).map(({ row, source }) => {
          const numbers = [
            format(channels.number('size_bytes')(row), 'bytes'),
            format(channels.number('latency_ps')(row), 'ps'),
            format(channels.number('bytes_per_s')(row), 'bytes_per_s'),
          ];
          const other = source === core ? channels.text('target') : channels.text('source');
          return (
            <li key={row}>
              <b>{`${source === core ? 'to' : 'from'} ${other(row)}`}</b> {numbers.join(' · ')}{' '}
              <code>{channels.text('ops')(row)}</code>
            </li>
          );
        })}
        {coreLinks.length > MOST_LINKS && (
          <li>… {plural(coreLinks.length - MOST_LINKS, 'more', 'more')} in the table</li>
        )}
      </ul>
    </>
  );
}

export function CoreCard({ cores, rows, parts, channels, links, core, step }: CardProps): VNode {
  const place = cores[core];
  if (!place || core >= rows.length)
    return <p class="pod-hint">Hover over a core for its step, links and group; click to pin it.</p>;
  const total = rows.number('total_ps')(core) || 1;
  const stack = parts.all().map(({ column, category, color }) => {
    const spent = rows.numberNamed(column)(core);
    return {
      title: category,
      fraction: (spent ?? 0) / total,
      token: categoryToken(color),
      tip: `${category}: ${format(spent, 'ps')}`,
      spent,
    };
  });
  const facts = [
    { name: 'Host', value: place.host },
    {
      name: 'Chip',
      value:
        place.chipId === null ? String(place.chip) : `${place.chip} of the host, ${place.chipId} of the pod`,
    },
    { name: rows.title('total_ps'), value: format(total, 'ps') },
    { name: 'Own time', value: format(rows.number('own_ps')(core), 'ps') },
    // All parts of the run, even if this core has none of a part: rows that come and go would shift the
    // layout under the pointer.
    ...stack.map(({ title, spent, fraction }) => ({
      name: title,
      value: `${format(spent, 'ps')} · ${format(fraction, 'fraction')}`,
    })),
  ];
  return (
    <>
      <h3>{place.name}</h3>
      {step && <small>{step}</small>}
      <StackBar parts={stack} label={`Parts of the step of ${place.name}`} />
      <Facts facts={facts} />
      {channels && <LinkList channels={channels} links={links} core={core} />}
      {canOpen('trace_viewer') && (
        <button
          type="button"
          class="button small"
          onClick={() => openTool('trace_viewer', { hosts: place.host })}
        >
          Timeline of the host
        </button>
      )}
    </>
  );
}
