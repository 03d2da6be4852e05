/** The allocator's history: drag to zoom, click to list what was in use at that moment. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { readNumber, readTable } from '../../api/declared';
import type { Payload } from '../../api/types';
import { format } from '../../base/units';
import { Chart } from '../../widgets/chart';
import { Legend, Section } from '../../widgets/summary';
import { Selection, useHidden, useWindowDrag, ZoomButtons } from '../time_window_hands';
import type { ToolProps } from '../tool';
import { HEIGHT_PX, historyOption, seriesOf } from './history_option';
import { failuresOf, filling, pointsOf, SCALARS, TABLES, windowOf } from './model';

export function HistorySection({
  payload,
  device,
  setParams,
}: { payload: Payload; device: string } & Pick<ToolProps, 'setParams'>): VNode {
  const window = windowOf(payload);
  const wholePs = readNumber(payload, SCALARS.history_ps) ?? window.endPs;
  const atPs = readNumber(payload, SCALARS.at_ps) ?? 0;
  const isWhole = window.startPs <= 0 && window.endPs >= wholePs;
  const [hidden, toggle] = useHidden(() => new Set());
  const timeline = useMemo(() => readTable(payload, TABLES.timeline), [payload]);
  const points = useMemo(() => filling(pointsOf(timeline), window), [payload]);
  const { drag, handlers, show } = useWindowDrag(window, wholePs, setParams);
  const failed = failuresOf(timeline).length > 0 ? ' · red lines: failed allocations' : '';
  const peak = format(readNumber(payload, SCALARS.peak_bytes), 'bytes');
  const range = `${format(window.startPs, 'ps')} to ${format(window.endPs, 'ps')}`;
  return (
    <Section
      title={`Memory of ${device}`}
      tip="Memory that blocks in use requested, and memory that the allocator held, since the first event"
      note={`${timeline.note} · drag to zoom, click to list what was in use then${failed}`}
      end={
        <>
          <Legend items={seriesOf(points)} hidden={hidden} onToggle={toggle} />
          <ZoomButtons window={window} isWhole={isWhole} tracePs={wholePs} onWindow={show} />
        </>
      }
    >
      <div class="tw-plot" {...handlers}>
        <Chart
          label={`Memory of ${device}: ${range}, peak ${peak}`}
          height={HEIGHT_PX}
          optionKey={`${[...hidden].join()}|${device}|${range}|${atPs}|${points.length}|${payload.run}`}
          option={(color) => historyOption({ timeline, points, window, hidden, atPs }, color)}
        />
        {drag && Math.abs(drag.to - drag.from) > 0.005 && <Selection drag={drag} />}
      </div>
    </Section>
  );
}
