/**
 * The history of the chosen memory: drag to zoom (which requests the window), click to list the memory in use
 * at that moment.
 */
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
import {
  clamped,
  drawnWindow,
  hiddenAtFirst,
  levelBefore,
  pointsOf,
  SCALARS,
  TABLES,
  windowOf,
  type MemoryRow,
} from './model';

type HistoryProps = { payload: Payload; memory: MemoryRow | undefined } & Pick<ToolProps, 'setParams'>;

export function HistorySection({ payload, memory, setParams }: HistoryProps): VNode {
  const asked = windowOf(payload);
  const tracePs = readNumber(payload, SCALARS.trace_duration_ps) ?? asked.endPs;
  const isWhole = asked.startPs <= 0 && asked.endPs >= tracePs;
  const atPs = readNumber(payload, SCALARS.at_ps) ?? 0;
  const [hidden, toggle] = useHidden(() => hiddenAtFirst(memory));
  const timeline = useMemo(() => readTable(payload, TABLES.timeline), [payload]);
  const { points, window, nBefore } = useMemo(() => {
    const after = pointsOf(timeline);
    const drawn = isWhole ? drawnWindow(after, asked) : asked;
    const before = isWhole ? levelBefore(timeline, after, drawn.startPs) : null;
    const inside = clamped(after, drawn);
    return { points: before ? [before, ...inside] : inside, window: drawn, nBefore: before ? 1 : 0 };
  }, [payload]);
  const { drag, handlers, show } = useWindowDrag(window, tracePs, setParams);
  const items = seriesOf(points);
  const controls = (
    <>
      <Legend items={items} hidden={hidden} onToggle={toggle} />
      <ZoomButtons window={window} isWhole={isWhole} tracePs={tracePs} onWindow={show} />
    </>
  );
  const label = `Memory in use: ${memory?.name ?? ''} from ${format(window.startPs, 'ps')} to ${format(window.endPs, 'ps')}, peak ${format(memory?.peakBytes ?? null, 'bytes')}`;
  return (
    <Section
      title="Memory in use"
      tip="How much of the chosen memory is in use over time"
      note={`${timeline.note} · drag to zoom, click to list what is in use then`}
      end={controls}
    >
      <div class="tw-plot" {...handlers}>
        <Chart
          label={label}
          height={HEIGHT_PX}
          optionKey={`${[...hidden].join()}|${memory?.fullName}|${window.startPs}|${window.endPs}|${atPs}|${points.length}|${payload.run}`}
          option={(color) => historyOption({ timeline, points, window, hidden, nBefore, atPs }, color)}
        />
        {drag && Math.abs(drag.to - drag.from) > 0.005 && <Selection drag={drag} />}
      </div>
    </Section>
  );
}
