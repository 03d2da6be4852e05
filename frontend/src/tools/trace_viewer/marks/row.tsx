/** The row of marks below the ruler, and their edges over the tracks; it moves with the window. */

import { useSignal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { format } from '../../../base/units';
import { MARKS_ROW_PX } from '../../../canvas/overlay';
import { timeLabel } from '../../../canvas/ticks';
import { spanPs } from '../../../canvas/viewport';
import { goToMark } from '../state/keeping';
import { isInstant, letterOf, type Mark } from '../state/marks';
import type { Timeline } from '../state/timeline';

const NS = 1000;
const TOKENS = ['--accent', '--warn', '--good', '--bad'] as const;

export function tokenOf(index: number): string {
  return `var(${TOKENS[index % TOKENS.length] ?? '--accent'})`;
}

/** "A, steady step: 12.3 ms from 85.5 ms". */
function describe(mark: Mark, index: number): string {
  const place = isInstant(mark)
    ? `at ${timeLabel(mark.startPs, NS)}`
    : `${format(mark.endPs - mark.startPs, 'ps')} from ${timeLabel(mark.startPs, NS)}`;
  return `${letterOf(index)}${mark.name ? `, ${mark.name}` : ''}: ${place}`;
}

/** Renders again with each frame that moves the window. */
function useView(timeline: Timeline): { startPs: number; perPs: number; widthPx: number } {
  const moved = useSignal('');
  useEffect(
    () =>
      timeline.onFrame(() => {
        const { startPs, endPs } = timeline.camera.view;
        moved.value = `${String(startPs)} ${String(endPs)} ${String(timeline.camera.widthPx)}`;
      }),
    [timeline],
  );
  void moved.value;
  const { view, widthPx } = timeline.camera;
  return { startPs: view.startPs, perPs: widthPx / spanPs(view), widthPx };
}

interface Placed {
  readonly mark: Mark;
  readonly index: number;
  readonly left: number;
  readonly width: number;
}

function usePlaced(timeline: Timeline): Placed[] {
  const { startPs, perPs, widthPx } = useView(timeline);
  return timeline.marks.list.value.flatMap((mark, index): Placed[] => {
    const [from, to] = [(mark.startPs - startPs) * perPs, (mark.endPs - startPs) * perPs];
    if (to < 0 || from > widthPx) return [];
    const left = Math.max(from, 0);
    return [{ mark, index, left, width: Math.min(to, widthPx) - left }];
  });
}

interface MarksRowProps {
  readonly timeline: Timeline;
  /** The timeline that the marks belong to: of two windows, the first. */
  readonly owner: Timeline;
}

export function MarksRow({ timeline, owner }: MarksRowProps): VNode | null {
  const { marks } = owner;
  const placed = usePlaced(timeline);
  const { topPx } = timeline.layout.value;
  if (!timeline.stack.hasMarks) return null;
  return (
    <div
      class="tv-marks"
      style={{ top: `${String(topPx - MARKS_ROW_PX)}px`, height: `${String(MARKS_ROW_PX)}px` }}
    >
      <button
        type="button"
        class="tv-marks-title"
        data-tip="Names, notes and comparison of the marks"
        onClick={() => {
          marks.isOpen.value = !marks.isOpen.value;
        }}
      >
        Marks
      </button>
      <div class="tv-marks-row" style={{ width: `${String(timeline.camera.widthPx)}px` }}>
        {placed.map(({ mark, index, left, width }) => (
          <button
            key={index}
            type="button"
            class={`tv-mark${isInstant(mark) ? ' is-instant' : ''}`}
            style={{
              left: `${String(Math.round(left))}px`,
              width: isInstant(mark) ? undefined : `${String(Math.max(18, Math.round(width)))}px`,
              '--mark': tokenOf(index),
            }}
            aria-label={`Mark ${describe(mark, index)}`}
            title={`${describe(mark, index)}${mark.note ? `\n${mark.note}` : ''}`}
            onClick={() => {
              goToMark(owner, mark);
            }}
            onKeyDown={(event) => {
              if (event.key === 'Delete' || event.key === 'Backspace') marks.remove(index);
              else if (event.key === 'F2') {
                marks.isOpen.value = true;
                marks.naming.value = index;
              } else return;
              event.preventDefault();
            }}
          >
            <b>{letterOf(index)}</b>
            {(isInstant(mark) || width > 60) && <span>{mark.name}</span>}
          </button>
        ))}
      </div>
    </div>
  );
}

/** Lines at the edges, over the tracks. */
export function MarkEdges({ timeline }: { timeline: Timeline }): VNode | null {
  const { startPs, perPs, widthPx } = useView(timeline);
  const edges = timeline.marks.list.value.flatMap((mark, index) =>
    [...new Set([mark.startPs, mark.endPs])].map((edgePs) => ({
      index,
      x: Math.round((edgePs - startPs) * perPs),
    })),
  );
  const visible = edges.filter(({ x }) => x >= 0 && x <= widthPx);
  if (visible.length === 0) return null;
  return (
    <div class="tv-mark-edges" aria-hidden="true">
      {visible.map(({ index, x }, i) => (
        <i key={i} style={{ left: `${String(x)}px`, borderColor: tokenOf(index) }} />
      ))}
    </div>
  );
}
