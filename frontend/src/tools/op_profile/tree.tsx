/** The tree as a table: a row per open node, bars of its use of the device, a click opens what is below or chooses an operation. */
import type { VNode } from 'preact';
import { exactText, format, plural, UNKNOWN } from '../../base/units';
import { bandToken, type OpNode, type SortName, type TreeRow, type TreeView } from './model';

export interface TreeProps {
  rows: readonly TreeRow[];
  view: TreeView;
  chosen: (node: OpNode) => boolean;
  hasPeaks: boolean;
  hasOnChip: boolean;
  onToggle: (node: OpNode) => void;
  onChoose: (node: OpNode) => void;
  onSort: (name: SortName) => void;
}

const INDENT_PX = 16;

function Bar({ used, rate, unit }: { used: number | null; rate: number | null; unit: string }): VNode {
  if (used === null) return <span class={rate === null ? 'unknown' : ''}>{rate === null ? UNKNOWN : format(rate, unit)}</span>;
  const tip = `${exactText(Number(used.toPrecision(4)), 'fraction')} of the peak${rate === null ? '' : `\n${format(rate, unit)}`}`;
  return (
    <span class="op-bar" data-tip={tip}>
      <span>
        <i style={{ width: `${Math.max(0, Math.min(1, used)) * 100}%`, background: `var(${bandToken(used)})` }} />
      </span>
      <b>{format(used, 'fraction')}</b>
    </span>
  );
}

function Name({ row, onToggle, onChoose }: { row: TreeRow } & Pick<TreeProps, 'onToggle' | 'onChoose'>): VNode {
  const { node, isOpen } = row;
  const tip = [node.name, node.provenance, node.program].filter(Boolean).join('\n');
  return (
    <div class="op-name" style={{ paddingLeft: `${(node.depth - 1) * INDENT_PX}px` }}>
      {node.children.length > 0 || node.isFusion ? (
        <button type="button" class="op-toggle" aria-expanded={isOpen} aria-label={`${isOpen ? 'Close' : 'Open'} ${node.name}`} onClick={() => onToggle(node)}>
          {isOpen ? '▾' : '▸'}
        </button>
      ) : (
        <span class="op-toggle" />
      )}
      <button type="button" class={node.kind === 'op' ? 'text-link mono' : node.isEstimate ? 'op-label mono' : 'op-label'} data-tip={tip} onClick={() => (node.kind === 'op' ? onChoose(node) : !node.isEstimate && onToggle(node))}>
        {node.name}
      </button>
      {node.kind !== 'op' && node.nChildren > 0 && <small class="muted">{node.nChildren.toLocaleString('en-US')}</small>}
    </div>
  );
}

function Rest({ row }: { row: TreeRow }): VNode {
  const { rest, node } = row;
  return (
    <tr class="op-rest">
      <td>
        <div class="op-name" style={{ paddingLeft: `${node.depth * INDENT_PX}px` }}>
          <span class="op-toggle" />
          <small class="muted">{plural(rest?.count ?? 0, 'shorter one', 'shorter ones')} not shown</small>
        </div>
      </td>
      <td class="n muted">{format(rest?.timePs ?? null, 'ps')}</td>
      <td colSpan={6} />
    </tr>
  );
}

/** An instruction inside of a fusion: nobody measured it. */
function Estimate({ node, hasOnChip }: { node: OpNode; hasOnChip: boolean }): VNode {
  const isKnown = node.timePs > 0;
  const tip = isKnown ? 'Estimated from its share of the FLOPs inside; not measured' : 'No FLOPs: no estimate';
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
      <td class="n" data-tip="FLOPs of one execution, by the cost model">
        {node.flops === null ? UNKNOWN : `${format(node.flops, 'count')} FLOP`}
      </td>
      <td colSpan={hasOnChip ? 4 : 3} />
    </tr>
  );
}

function Line({ row, chosen, hasOnChip, onToggle, onChoose }: { row: TreeRow } & Pick<TreeProps, 'chosen' | 'hasOnChip' | 'onToggle' | 'onChoose'>): VNode {
  const { node } = row;
  if (node.isEstimate) return <Estimate node={node} hasOnChip={hasOnChip} />;
  return (
    <tr data-row={node.row} aria-level={node.depth} aria-expanded={node.children.length || node.isFusion ? row.isOpen : undefined} aria-selected={chosen(node)}>
      <td>
        <Name row={row} onToggle={onToggle} onChoose={onChoose} />
      </td>
      <td class="n" data-tip={exactText(node.timePs, 'ps')}>
        {format(node.timePs, 'ps')}
      </td>
      <td class="n">
        <span class="op-bar">
          <span>
            <i style={{ width: `${node.share * 100}%`, background: `var(${node.kind === 'idle' ? '--c-idle' : '--c-compute'})` }} />
          </span>
          <b>{format(node.share, 'fraction')}</b>
        </span>
      </td>
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
    </tr>
  );
}

export function Tree({ rows, view, chosen, hasPeaks, hasOnChip, onToggle, onChoose, onSort }: TreeProps): VNode {
  const columns: { name: SortName; title: string; tip: string }[] = [
    { name: 'name', title: 'Name', tip: 'Program, category or operation' },
    { name: 'time', title: 'Time', tip: 'Self time of all operations below' },
    { name: 'time', title: 'Share', tip: 'Of the whole' },
    { name: 'flops', title: hasPeaks ? 'FLOPS' : 'FLOP rate', tip: 'FLOP rate by the peak of the device' },
    { name: 'hbm', title: hasPeaks ? 'HBM' : 'Bandwidth', tip: 'Bandwidth by the peak of the main memory' },
    ...(hasOnChip ? [{ name: 'on_chip' as const, title: 'On-chip', tip: 'Bandwidth of on-chip memory by its peak: read, else write' }] : []),
    { name: 'occurrences', title: 'Occurrences', tip: 'On all devices and hosts' },
    { name: 'avg', title: 'Average', tip: 'Self time of an occurrence' },
  ];
  const sortState = (name: SortName): 'ascending' | 'descending' | 'none' => (view.sort !== name ? 'none' : view.ascending ? 'ascending' : 'descending');
  return (
    <div class="table-scroll">
      <table class="op-tree" role="treegrid" aria-label="Op profile">
        <thead>
          <tr>
            {columns.map(({ name, title, tip }) => (
              <th key={title} class={name === 'name' ? '' : 'n'} aria-sort={sortState(name)}>
                <button type="button" data-tip={tip} onClick={() => onSort(name)}>
                  {title}
                  {view.sort === name && title !== 'Share' && <span aria-hidden="true">{view.ascending ? ' ↑' : ' ↓'}</span>}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (row.rest ? <Rest key={`rest-${row.node.row}`} row={row} /> : <Line key={row.node.row} {...{ row, chosen, hasOnChip, onToggle, onChoose }} />))}
        </tbody>
      </table>
    </div>
  );
}
