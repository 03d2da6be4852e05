/** Numbers, the allocator's history if the snapshot has one, and every table. */
import type { VNode } from 'preact';
import { readNumber, readTable, readTiles, type ColumnOf } from '../../api/declared';
import type { Payload } from '../../api/types';
import { Tiles } from '../../widgets/summary';
import { TableSection } from '../table_section';
import type { ToolProps } from '../tool';
import { HistorySection } from './history';
import { SCALARS, TABLES } from './model';
import './style.css';

type ViewProps = { payload: Payload } & Pick<ToolProps, 'params' | 'setParams'>;

/** Tables of what is in use at the moment that a click chose. */
const AT_MOMENT: readonly string[] = [TABLES.at_places.name, TABLES.at_sizes.name];
/** Of many failures at one place it is the place that matters. */
const ALWAYS: readonly ColumnOf<typeof TABLES.failures>[] = ['place'];
const OF_MOMENT = { start_ps: undefined, end_ps: undefined, at_ps: undefined };

function DeviceChoice({
  names,
  chosen,
  setParams,
}: { names: readonly string[]; chosen: string } & Pick<ToolProps, 'setParams'>): VNode {
  return (
    <label class="ms-choice">
      Device
      <select
        class="field"
        value={chosen}
        onChange={(event) => setParams({ device: event.currentTarget.value, ...OF_MOMENT }, 'push')}
      >
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

export function MemorySnapshotView({ payload, params, setParams }: ViewProps): VNode {
  const hasHistory = Object.hasOwn(payload.tables, TABLES.timeline.name);
  const names = hasHistory
    ? readTable(payload, TABLES.devices)
        .all()
        .map(({ device }) => device)
    : [];
  const device = names[readNumber(payload, SCALARS.device_row) ?? 0] ?? '';
  const back =
    params['at_ps'] === undefined ? undefined : (
      <button type="button" class="button small" onClick={() => setParams({ at_ps: undefined }, 'push')}>
        Back to the peak
      </button>
    );
  return (
    <>
      {names.length > 1 && <DeviceChoice names={names} chosen={device} setParams={setParams} />}
      <Tiles tiles={readTiles(payload)} />
      {hasHistory && <HistorySection key={device} payload={payload} device={device} setParams={setParams} />}
      {Object.entries(payload.tables)
        .filter(([name]) => name !== TABLES.timeline.name)
        .map(([name, table]) => (
          <TableSection
            key={name}
            name={name}
            table={table}
            params={params}
            setParams={setParams}
            always={ALWAYS}
            end={AT_MOMENT.includes(name) ? back : undefined}
          />
        ))}
    </>
  );
}
