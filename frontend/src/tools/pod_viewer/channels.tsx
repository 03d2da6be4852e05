/**
 * The channels of a pod as a table with bars of send delay and latency, the card of the chosen one, and its
 * steps.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { format, quantity } from '../../base/units';
import { canOpen } from '../../state/catalog';
import { openTool } from '../../state/selection';
import { Facts, Section } from '../../widgets/summary';
import type { TableData } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { useTableView } from '../table_view';
import { tableData, type ToolProps } from '../tool';
import { ChannelSteps } from './channel_steps';
import { chipNames, type ChannelRows, type Core, type Slice } from './model';

const HIDDEN = ['source_row', 'target_row', 'ops', 'send_op', 'receive_op', 'hops', 'link_fraction'];
const SLOWEST_FIRST = { column: 'latency_ps', descending: true };
const BAR_PX = 104;

interface ChannelsProps extends ToolProps {
  channels: ChannelRows;
  cores: readonly Core[];
  slice: Slice | null;
  /** Row of the chosen channel, -1 none. */
  chosen: number;
  steps: readonly string[];
  /** The step that `channels` are of, -1: the mean of all. */
  step: number;
}

/** Send delay and latency as one bar, compared with the longest of all channels. */
function DelayBar({ delay, latency, longest }: { delay: number; latency: number; longest: number }): VNode {
  const share = (value: number): string => `${(100 * value) / longest}%`;
  return (
    <span class="pod-delay" data-tip={`Send delay ${format(delay, 'ps')}, latency ${format(latency, 'ps')}`}>
      <i style={{ width: share(delay), background: 'var(--c-input)' }} />
      <i style={{ width: share(latency), background: 'var(--c-collective)' }} />
    </span>
  );
}

function Legend(): VNode {
  return (
    <span class="pod-legend">
      <i style={{ background: 'var(--c-input)' }} /> Send delay{' '}
      <i style={{ background: 'var(--c-collective)' }} /> Latency
    </span>
  );
}

function placeText({ name, host, chip, chipId, place }: Core): string {
  if (!place) return name;
  return `chip ${chipId ?? chip} at (${place.join(', ')}), ${host}`;
}

function Operation({ name, host }: { name: string; host: string }): VNode {
  if (!canOpen('trace_viewer')) return <code>{name}</code>;
  return (
    <button
      type="button"
      class="text-link mono"
      data-tip="Search for it on the host's timeline"
      onClick={() => openTool('trace_viewer', { hosts: host, q: name })}
    >
      {name}
    </button>
  );
}

function Numbers({ numbers }: { numbers: readonly (readonly [string, number | null, string])[] }): VNode {
  return (
    <dl class="pod-numbers">
      {numbers.map(([title, value, unit]) => {
        const shown = quantity(value, unit);
        return (
          <div key={title}>
            <dt>{title}</dt>
            <dd>
              {shown.number}
              {shown.unit && <small> {shown.unit}</small>}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function linkText(channels: ChannelRows, row: number, slice: Slice): string {
  const hops = channels.number('hops')(row) ?? 0;
  const parts = [channels.text('link')(row)];
  if (hops) parts.push(`${hops} ${hops === 1 ? 'hop' : 'hops'}`);
  const fraction = channels.number('link_fraction')(row);
  if (fraction !== null)
    parts.push(`${format(fraction, 'fraction')} of ${format(slice.linkBytesPerS, 'bytes_per_s')}`);
  return parts.join(', ');
}

/** The chosen channel: what it carries, between which chips, over which link, and how long that takes. */
function ChannelCard(props: ChannelsProps): VNode {
  const { channels, cores, slice, chosen, steps, step } = props;
  const [source, target] = (['source_row', 'target_row'] as const).map(
    (end) => cores[channels.number(end)(chosen) ?? -1],
  );
  const facts = [
    { name: 'From', value: source ? placeText(source) : channels.text('source')(chosen) },
    { name: 'To', value: target ? placeText(target) : channels.text('target')(chosen) },
    ...(slice ? [{ name: 'Link', value: linkText(channels, chosen, slice) }] : []),
    { name: channels.title('n_per_step'), value: format(channels.number('n_per_step')(chosen), 'count') },
  ];
  const base = step >= 0 ? `step ${steps[step]}` : steps.length ? 'mean of all steps' : '';
  return (
    <aside class="pod-channel" aria-label="Channel">
      <h3>
        {channelTitle(channels, chosen)} <small>{base}</small>
      </h3>
      <Numbers
        numbers={[
          ['Size', channels.number('size_bytes')(chosen), 'bytes'],
          ['Latency', channels.number('latency_ps')(chosen), 'ps'],
          ['Bandwidth', channels.number('bytes_per_s')(chosen), 'bytes_per_s'],
          ['Send delay', channels.number('send_delay_ps')(chosen), 'ps'],
        ]}
      />
      <Facts facts={facts} />
      <p class="pod-ops">
        Send <Operation name={channels.text('send_op')(chosen)} host={source?.host ?? ''} />
      </p>
      <p class="pod-ops">
        Receive <Operation name={channels.text('receive_op')(chosen)} host={target?.host ?? ''} />
      </p>
    </aside>
  );
}

export function channelTitle(channels: ChannelRows, row: number): string {
  const id = channels.number('channel_id')(row);
  return id === null ? 'Channel' : `Channel ${id}`;
}

/** The table with chips by their number in the slice, and room for the bars. */
function shownData(channels: ChannelRows, cores: readonly Core[]): TableData {
  const data = tableData(channels.table);
  const names = chipNames(cores);
  return {
    ...data,
    columns: data.columns.map((column) => {
      if (column.name === 'latency_ps') return { ...column, extraPx: BAR_PX };
      if (!names || (column.name !== 'source' && column.name !== 'target')) return column;
      return { ...column, label: (name) => names.get(name) ?? name };
    }),
  };
}

/** A click on a row chooses the channel: its card, and its link on the map. */
export function Channels(props: ChannelsProps): VNode {
  const { channels, cores, chosen, steps, setParams } = props;
  const data = useMemo(() => shownData(channels, cores), [channels, cores]);
  const [view, setView] = useTableView('channels', props, data, { hidden: HIDDEN, sort: SLOWEST_FIRST });
  const [latency, delay] = [channels.number('latency_ps'), channels.number('send_delay_ps')];
  const longest = useMemo(() => {
    let most = 1;
    for (let row = 0; row < channels.length; row++)
      most = Math.max(most, (latency(row) ?? 0) + (delay(row) ?? 0));
    return most;
  }, [channels]);
  return (
    <div class={chosen >= 0 ? 'pod-channels with-card' : 'pod-channels'}>
      <Section title={channels.table.title} note={channels.table.note} end={<Legend />}>
        <Table
          data={data}
          view={view}
          onView={setView}
          label={channels.table.title}
          rowsInFull={12}
          maxHeight="420px"
          mono={['ops', 'send_op', 'receive_op']}
          render={(column, row, text) => {
            const latencyPs = latency(row);
            if (column.name !== 'latency_ps' || latencyPs === null) return undefined;
            return (
              <span class="pod-latency-cell">
                <DelayBar delay={delay(row) ?? 0} latency={latencyPs} longest={longest} /> {text}
              </span>
            );
          }}
          onRow={(row) => setParams({ channel: row === chosen ? undefined : String(row) }, 'replace')}
          chosenRow={chosen}
        />
      </Section>
      {chosen >= 0 && <ChannelCard {...props} />}
      {chosen >= 0 && steps.length > 1 && (
        <div class="pod-channel-steps">
          <ChannelSteps {...props} title={`${channelTitle(channels, chosen)} by step`} channel={chosen} />
        </div>
      )}
    </div>
  );
}
