/** Details of one core: its place, its step, the parts of the step, its links and its group. */
import type { VNode } from 'preact';
import { categoryToken } from '../../base/color';
import { format, plural } from '../../base/units';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { Facts, StackBar } from '../../widgets/summary';
import {
  meanOf,
  unitOf,
  type ChannelRows,
  type Core,
  type CoreRows,
  type Link,
  type PartRows,
} from './model';

const MOST_LINKS = 6;

interface CardProps {
  cores: readonly Core[];
  rows: CoreRows;
  parts: PartRows;
  /** null: a single core has none. */
  channels: ChannelRows | null;
  links: readonly Link[];
  /** -1: the mean of all. */
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
              <i
                class="dot"
                style={{ background: source === core ? 'var(--accent)' : 'var(--bad)' }}
                aria-hidden="true"
              />{' '}
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

function placeFacts({ host, chip, chipId }: Core): { name: string; value: string }[] {
  const text = chipId === null ? String(chip) : `${chip} of the host, ${chipId} of the pod`;
  return [
    { name: 'Host', value: host },
    { name: 'Chip', value: text },
  ];
}

export function CoreCard({ cores, rows, parts, channels, links, core, step }: CardProps): VNode {
  const place = core < rows.length ? cores[core] : undefined;
  const unit = unitOf(rows);
  const name = place?.name ?? `Mean of ${plural(rows.length, unit)}`;
  const shown = (value: (row: number) => number | null): number | null =>
    place ? value(core) : meanOf(value, rows.length);
  const total = shown(rows.number('total_ps'));
  const stack = parts.all().map(({ column, category, color }) => {
    const spent = shown(rows.numberNamed(column));
    return {
      title: category,
      fraction: (spent ?? 0) / (total || 1),
      token: categoryToken(color),
      tip: `${category}: ${format(spent, 'ps')}`,
      spent,
    };
  });
  const facts = [
    ...(place ? placeFacts(place) : []),
    { name: rows.title('total_ps'), value: format(total, 'ps') },
    { name: 'Own time', value: format(shown(rows.number('own_ps')), 'ps') },
    // All parts of the run, even if this core has none of a part: rows that come and go would shift the
    // layout under the pointer.
    ...stack.map(({ title, spent, fraction }) => ({
      name: title,
      value: `${format(spent, 'ps')} · ${format(fraction, 'fraction')}`,
    })),
  ];
  return (
    <>
      <h3>{name}</h3>
      {step && <small>{step}</small>}
      <StackBar parts={stack} label={`Parts of the step: ${name}`} />
      <Facts facts={facts} />
      {!place && (
        <p class="pod-hint">
          Hover over a {unit} for its step{channels?.length ? ', links and group' : ''}; click to pin it.
        </p>
      )}
      {place && channels && <LinkList channels={channels} links={links} core={core} />}
      {place && canOpen('trace_viewer') && (
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
