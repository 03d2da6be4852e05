/**
 * The history of the chosen memory: drag to zoom (which requests the window), click to list the memory in use
 * at that moment.
 */
import type { VNode } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { readNumber, readTable } from '../../api/declared';
import type { Payload } from '../../api/types';
import { format } from '../../base/units';
import { Chart } from '../../widgets/chart';
import { Legend, Section } from '../../widgets/summary';
import type { ToolProps } from '../tool';
import { HEIGHT_PX, historyOption, LEFT_PX, RIGHT_PX, seriesOf } from './history_option';
import {
  clamped,
  dragged,
  drawnWindow,
  hiddenAtFirst,
  levelBefore,
  moved,
  pointsOf,
  SCALARS,
  TABLES,
  windowOf,
  windowParams,
  type MemoryRow,
  type Window,
} from './model';

type HistoryProps = { payload: Payload; memory: MemoryRow | undefined } & Pick<ToolProps, 'setParams'>;

interface Drag {
  from: number;
  to: number;
}

/** The pointer's position as a share of the plot's width. */
function shareAt(event: PointerEvent, box: HTMLElement): number {
  const { left, width } = box.getBoundingClientRect();
  return (event.clientX - left - LEFT_PX) / Math.max(1, width - LEFT_PX - RIGHT_PX);
}

function useDrag(onZoom: (drag: Drag) => void): {
  drag: Drag | null;
  handlers: Record<string, (event: PointerEvent) => void>;
} {
  const [drag, setDrag] = useState<Drag | null>(null);
  const started = useRef<Drag | null>(null);
  const set = (next: Drag | null): void => {
    started.current = next;
    setDrag(next);
  };
  const handlers = {
    onPointerDown: (event: PointerEvent) => {
      const share = shareAt(event, event.currentTarget as HTMLElement);
      if (event.button !== 0 || share < 0 || share > 1 || (event.target as Element).closest('button')) return;
      set({ from: share, to: share });
    },
    onPointerMove: (event: PointerEvent) => {
      if (!started.current) return;
      const share = shareAt(event, event.currentTarget as HTMLElement);
      if (Math.abs(share - started.current.from) > 0.005)
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      set({ from: started.current.from, to: share });
    },
    onPointerUp: () => {
      const done = started.current;
      set(null);
      if (done) onZoom(done);
    },
    onPointerCancel: () => set(null),
  };
  return { drag, handlers };
}

function Selection({ drag }: { drag: Drag }): VNode {
  const [low, high] = [Math.max(0, Math.min(drag.from, drag.to)), Math.min(1, Math.max(drag.from, drag.to))];
  const room = `(100% - ${LEFT_PX + RIGHT_PX}px)`;
  return (
    <div
      class="mp-selection"
      style={{ left: `calc(${LEFT_PX}px + ${low} * ${room})`, width: `calc(${high - low} * ${room})` }}
    />
  );
}

function ZoomButtons({
  window,
  isWhole,
  tracePs,
  onWindow,
}: {
  window: Window;
  isWhole: boolean;
  tracePs: number;
  onWindow: (window: Window | null) => void;
}): VNode {
  const button = (label: string, text: string, next: () => Window | null, disabled = false): VNode => (
    <button
      type="button"
      class="button small"
      aria-label={label}
      data-tip={label}
      disabled={disabled}
      onClick={() => onWindow(next())}
    >
      {text}
    </button>
  );
  return (
    <span class="mp-zoom" role="group" aria-label="Zoom">
      {button('Zoom in', '+', () => moved(window, 0.5, 0, tracePs))}
      {button('Zoom out', '−', () => moved(window, 2, 0, tracePs), isWhole)}
      {button('Earlier', '‹', () => moved(window, 1, -0.5, tracePs), isWhole || window.startPs <= 0)}
      {button('Later', '›', () => moved(window, 1, 0.5, tracePs), window.endPs >= tracePs)}
      {button('All: whole capture', 'All', () => null, isWhole)}
    </span>
  );
}

export function HistorySection({ payload, memory, setParams }: HistoryProps): VNode {
  const asked = windowOf(payload);
  const tracePs = readNumber(payload, SCALARS.trace_duration_ps) ?? asked.endPs;
  const isWhole = asked.startPs <= 0 && asked.endPs >= tracePs;
  const atPs = readNumber(payload, SCALARS.at_ps) ?? 0;
  const [hidden, setHidden] = useState<ReadonlySet<string>>(() => hiddenAtFirst(memory));
  const timeline = useMemo(() => readTable(payload, TABLES.timeline), [payload]);
  const { points, window, nBefore } = useMemo(() => {
    const after = pointsOf(timeline);
    const drawn = isWhole ? drawnWindow(after, asked) : asked;
    const before = isWhole ? levelBefore(timeline, after, drawn.startPs) : null;
    const inside = clamped(after, drawn);
    return { points: before ? [before, ...inside] : inside, window: drawn, nBefore: before ? 1 : 0 };
  }, [payload]);
  const show = (next: Window | null): void => setParams(windowParams(next, tracePs), 'push');
  const { drag, handlers } = useDrag(({ from, to }) => {
    const next = dragged(window, from, to);
    if (next) show(next);
    else if (Math.abs(to - from) < 0.005)
      setParams(
        { at_ps: String(Math.round(window.startPs + from * (window.endPs - window.startPs))) },
        'push',
      );
  });
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
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
      <div class="mp-history" {...handlers}>
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
