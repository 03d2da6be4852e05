/** All memories of the chosen hosts side by side: a small history of each, and a table. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { ColumnOf } from '../../api/declared';
import type { Table as PayloadTable } from '../../api/types';
import { format } from '../../base/units';
import { Section } from '../../widgets/summary';
import { PLAIN_VIEW } from '../../widgets/table/model';
import { Table } from '../../widgets/table/table';
import { idleColumns, tableData } from '../tool';
import { sparkPath, type MemoryRow, type TABLES } from './model';

const HIDDEN_AT_FIRST: readonly ColumnOf<typeof TABLES.memories>[] = [
  'stack_bytes',
  'free_bytes',
  'heap_bytes',
  'n_allocations',
  'n_deallocations',
];

interface MemoriesProps {
  memories: readonly MemoryRow[];
  table: PayloadTable;
  /** The row that the page shows in full. */
  chosen: number;
  tracePs: number;
  onChoose: (fullName: string) => void;
}

function SmallHistory({
  memory,
  tracePs,
  isChosen,
  hasHosts,
  onChoose,
}: {
  memory: MemoryRow;
  tracePs: number;
  isChosen: boolean;
  hasHosts: boolean;
  onChoose: () => void;
}): VNode {
  const share = memory.capacityBytes ? format(memory.usedFraction, 'fraction') : '';
  const peak = `Peak ${format(memory.peakBytes, 'bytes')}${share && `, ${share} of ${format(memory.capacityBytes, 'bytes')}`}`;
  return (
    <button
      type="button"
      class="mp-small"
      aria-pressed={isChosen}
      onClick={onChoose}
      data-tip={`${memory.fullName}\n${peak}`}
    >
      <b>{memory.name}</b>
      <small>{hasHosts ? memory.host : ' '}</small>
      <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
        <path d={sparkPath(memory.points, tracePs)} />
      </svg>
      <span>
        {format(memory.peakBytes, 'bytes')} <small>{share}</small>
      </span>
      {memory.floorRise !== null && memory.floorRise > 0 && (
        <small class="mp-rise">+{format(memory.floorRise, 'bytes')} per step</small>
      )}
    </button>
  );
}

export function MemoriesSection({ memories, table, chosen, tracePs, onChoose }: MemoriesProps): VNode {
  const data = useMemo(() => tableData(table), [table]);
  const view = useMemo(
    () => ({
      ...PLAIN_VIEW,
      hidden: new Set([...HIDDEN_AT_FIRST, ...idleColumns(data)].filter((name) => name !== 'memory')),
    }),
    [data],
  );
  const hosts = new Set(memories.map(({ host }) => host));
  const drawn = memories.filter(({ points }) => points.length > 0);
  const note = `${memories.length.toLocaleString('en-US')} memories${hosts.size > 1 ? ` on ${hosts.size} hosts` : ''}; each drawn up to its own peak`;
  return (
    <Section title="Memories" note={note}>
      <div class="mp-grid">
        {drawn.map((memory) => (
          <SmallHistory
            key={memory.fullName}
            memory={memory}
            tracePs={Math.max(tracePs, memory.points.at(-1)?.ps ?? 0)}
            isChosen={memory.row === chosen}
            hasHosts={hosts.size > 1}
            onChoose={() => onChoose(memory.fullName)}
          />
        ))}
      </div>
      <Table
        data={data}
        view={view}
        label="Memories"
        hasToolbar={memories.length > 10}
        rowsInFull={12}
        maxHeight="400px"
        onRow={(row) => onChoose(memories[row]?.fullName ?? '')}
        chosenRow={chosen}
        barToken="--q-0"
        mono={['memory']}
      />
    </Section>
  );
}
