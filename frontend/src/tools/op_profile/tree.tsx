/**
 * The tree as a table: a row per open node, bars of its device utilization; a click opens what is below or
 * chooses an operation. Of many rows only those on screen are drawn.
 */
import type { VNode } from 'preact';
import { useRef } from 'preact/hooks';
import { exactText, format, plural, UNKNOWN } from '../../base/units';
import { ROW_PX, Space, useKeptLines, useRows } from '../../widgets/table/rows';
import { useSize } from '../graph_hands';
import { bandToken, type OpNode } from './model';
import { type SortName, type TreeRow, type TreeView } from './rows';

export interface TreeProps {
  rows: readonly TreeRow[];
  view: TreeView;
  chosen: (node: OpNode) => boolean;
  hasPeaks: boolean;
  hasOnChip: boolean;
  hasWasted: boolean;
  onToggle: (node: OpNode) => void;
  onChoose: (node: OpNode) => void;
  onSort: (name: SortName) => void;
}

const INDENT_PX = 16;
const BAR_PX = 122;
/** Up to this many rows all are drawn and the page scrolls, not the tree. */
const ROWS_IN_FULL = 40;
/** Beside the card of an operation there may be room only for times: the card has the rest. */
const ROOM_FOR_RATES_PX = 900;
const TIMES: readonly SortName[] = ['name', 'time', 'wasted'];
const MOST_HEIGHT = `min(72vh, ${26 * ROW_PX}px)`;

/** A part of a whole as the background of its number. */
function barStyle(part: number, token: string): Record<string, string> {
  return { '--part': `${Math.max(0, Math.min(1, part))}`, '--bar': `var(${token})` };
}

function Bar({ used, rate, unit }: { used: number | null; rate: number | null; unit: string }): VNode {
  if (used === null)
    return <span class={rate === null ? 'unknown' : ''}>{rate === null ? UNKNOWN : format(rate, unit)}</span>;
  const tip = `${exactText(Number(used.toPrecision(4)), 'fraction')} of the peak${rate === null ? '' : `\n${format(rate, unit)}`}`;
  return (
    <span class="op-bar" data-tip={tip} style={barStyle(used, bandToken(used))}>
      {format(used, 'fraction')}
    </span>
  );
}

function Name({
  row,
  onToggle,
  onChoose,
}: { row: TreeRow } & Pick<TreeProps, 'onToggle' | 'onChoose'>): VNode {
  const { node, isOpen } = row;
  const tip = [node.name, node.provenance, node.program].filter(Boolean).join('\n');
  return (
    <div class="op-name" style={{ paddingLeft: `${(node.depth - 1) * INDENT_PX}px` }}>
      {node.children.length > 0 || node.isFusion ? (
        <button
          type="button"
          class="op-toggle"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? 'Close' : 'Open'} ${node.name}`}
          onClick={() => onToggle(node)}
        >
          {isOpen ? '▾' : '▸'}
        </button>
      ) : (
        <span class="op-toggle" />
      )}
      <button
        type="button"
        class={node.kind === 'op' ? 'text-link mono' : node.isEstimate ? 'op-label mono' : 'op-label'}
        data-tip={tip}
        onClick={() => (node.kind === 'op' ? onChoose(node) : !node.isEstimate && onToggle(node))}
      >
        {node.name}
      </button>
      {node.kind !== 'op' && node.nChildren > 0 && (
        <small class="muted">{node.nChildren.toLocaleString('en-US')}</small>
      )}
    </div>
  );
}

function Rest({ row, nColumns }: { row: TreeRow; nColumns: number }): VNode {
  const { rest, node } = row;
  return (
    <tr class="op-rest">
      <td>
        <div class="op-name" style={{ paddingLeft: `${node.depth * INDENT_PX}px` }}>
          <span class="op-toggle" />
          <small class="muted">{plural(rest?.count ?? 0, 'other', 'others')} not shown</small>
        </div>
      </td>
      <td class="n muted">{format(rest?.timePs ?? null, 'ps')}</td>
      <td colSpan={nColumns - 2} />
    </tr>
  );
}

/** An instruction inside a fusion: not measured. */
function Estimate({
  node,
  hasOnChip,
  hasWasted,
  hasRates,
}: { node: OpNode; hasRates: boolean } & Pick<TreeProps, 'hasOnChip' | 'hasWasted'>): VNode {
  const isKnown = node.timePs > 0;
  const tip = isKnown
    ? 'Estimated from its share of the FLOPs inside; not measured'
    : 'No FLOPs: no estimate';
  return (
    <tr class="op-estimate" data-row={node.row} aria-level={node.depth}>
      <td>
        <Name row={{ node, isOpen: false }} onToggle={() => undefined} onChoose={() => undefined} />
      </td>
      <td class="n" data-tip={tip}>
        {isKnown ? `≈ ${format(node.timePs, 'ps')}` : UNKNOWN}
      </td>
      <td class="n" data-tip={tip}>
        {isKnown ? `≈ ${format(node.share, 'fraction')}` : UNKNOWN}
      </td>
      {hasWasted && <td />}
      {hasRates && (
        <>
          <td class="n" data-tip="FLOPs of one execution, by the cost model">
            {node.flops === null ? UNKNOWN : `${format(node.flops, 'count')} FLOP`}
          </td>
          <td colSpan={hasOnChip ? 4 : 3} />
        </>
      )}
    </tr>
  );
}

function Line({
  row,
  chosen,
  hasOnChip,
  hasWasted,
  hasRates,
  onToggle,
  onChoose,
}: { row: TreeRow; hasRates: boolean } & Pick<
  TreeProps,
  'chosen' | 'hasOnChip' | 'hasWasted' | 'onToggle' | 'onChoose'
>): VNode {
  const { node } = row;
  if (node.isEstimate) return <Estimate {...{ node, hasOnChip, hasWasted, hasRates }} />;
  return (
    <tr
      data-row={node.row}
      aria-level={node.depth}
      aria-expanded={node.children.length || node.isFusion ? row.isOpen : undefined}
      aria-selected={chosen(node)}
    >
      <td>
        <Name row={row} onToggle={onToggle} onChoose={onChoose} />
      </td>
      <td class="n" data-tip={exactText(node.timePs, 'ps')}>
        {format(node.timePs, 'ps')}
      </td>
      <td class="n">
        <span class="op-bar" style={barStyle(node.share, node.kind === 'idle' ? '--c-idle' : '--c-compute')}>
          {format(node.share, 'fraction')}
        </span>
      </td>
      {hasWasted && (
        <td class="n" data-tip={exactText(node.wastedPs, 'ps')}>
          {format(node.wastedPs, 'ps')}
        </td>
      )}
      {hasRates && (
        <>
          <td class="n">
            <Bar used={node.flopsUsed} rate={node.flopRate} unit="flops_per_s" />
          </td>
          <td class="n">
            <Bar used={node.hbmUsed} rate={node.hbmRate} unit="bytes_per_s" />
          </td>
          {hasOnChip && (
            <td class="n">
              <Bar used={node.onChipRead ?? node.onChipWrite} rate={null} unit="bytes_per_s" />
            </td>
          )}
          <td class="n">{node.kind === 'idle' ? '' : format(node.occurrences, 'count')}</td>
          <td class="n">{format(node.avgPs, 'ps')}</td>
        </>
      )}
    </tr>
  );
}

export function Tree(props: TreeProps): VNode {
  const { rows, view, chosen, hasPeaks, hasOnChip, hasWasted, onToggle, onChoose, onSort } = props;
  const scroll = useRef<HTMLDivElement>(null);
  const hasRates = useSize(scroll, { width: ROOM_FOR_RATES_PX, height: 0 }).width >= ROOM_FOR_RATES_PX;
  const all: { name: SortName; title: string; tip: string; widthPx?: number }[] = [
    { name: 'name', title: 'Name', tip: 'Program, category or operation' },
    { name: 'time', title: 'Time', tip: 'Self time of all operations below', widthPx: 80 },
    { name: 'time', title: 'Share', tip: 'Share of the whole', widthPx: BAR_PX },
    ...(hasWasted
      ? [
          {
            name: 'wasted' as const,
            title: 'Wasted',
            tip: 'Time × (1 − utilization of the limiting resource)',
            widthPx: 80,
          },
        ]
      : []),
    {
      name: 'flops',
      title: hasPeaks ? 'FLOPS' : 'FLOP rate',
      tip: "FLOP rate ÷ the device's peak",
      widthPx: BAR_PX,
    },
    {
      name: 'hbm',
      title: hasPeaks ? 'HBM' : 'Bandwidth',
      tip: "Bandwidth ÷ the main memory's peak",
      widthPx: BAR_PX,
    },
    ...(hasOnChip
      ? [
          {
            name: 'on_chip' as const,
            title: 'On-chip',
            tip: 'On-chip memory bandwidth ÷ its peak: read, else write',
            widthPx: BAR_PX,
          },
        ]
      : []),
    { name: 'occurrences', title: 'Occurrences', tip: 'On all devices and hosts', widthPx: 100 },
    { name: 'avg', title: 'Average', tip: 'Self time per occurrence', widthPx: 80 },
  ];
  const sortState = (name: SortName): 'ascending' | 'descending' | 'none' =>
    view.sort !== name ? 'none' : view.ascending ? 'ascending' : 'descending';
  const columns = hasRates ? all : all.filter(({ name }) => TIMES.includes(name));
  const range = useRows(scroll, rows.length, ROWS_IN_FULL);
  const line = (index: number): VNode => {
    const row = rows[index] as TreeRow;
    return row.rest ? (
      <Rest key={index} row={row} nColumns={columns.length} />
    ) : (
      <Line key={index} {...{ row, chosen, hasOnChip, hasWasted, hasRates, onToggle, onChoose }} />
    );
  };
  const lines = useKeptLines([props, hasRates])(range, rows.length, () => '', line);
  return (
    <div class="table-scroll" ref={scroll} style={rows.length > ROWS_IN_FULL ? { height: MOST_HEIGHT } : {}}>
      <table
        class={hasRates ? 'op-tree' : 'op-tree narrow'}
        role="treegrid"
        aria-label="Op profile"
        aria-rowcount={rows.length + 1}
      >
        <colgroup>
          {columns.map(({ title, widthPx }) => (
            <col key={title} style={widthPx ? { width: `${widthPx}px` } : {}} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map(({ name, title, tip }) => (
              <th key={title} class={name === 'name' ? '' : 'n'} aria-sort={sortState(name)}>
                <button type="button" data-tip={tip} onClick={() => onSort(name)}>
                  {title}
                  {view.sort === name && title !== 'Share' && (
                    <span aria-hidden="true">{view.ascending ? ' ↑' : ' ↓'}</span>
                  )}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Space nRows={range.first} nColumns={columns.length} />
          {lines}
          <Space nRows={range.total - range.last} nColumns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}
