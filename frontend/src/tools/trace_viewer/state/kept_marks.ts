/** A run's marks in this browser: read when the page opens without marks in its link, written when they change. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ToolProps } from '../../tool';
import { keepMarks, keptMarks } from './marks';
import type { Timeline } from './timeline';

export function useKeptMarks(timeline: Timeline | null, { run, params }: ToolProps): void {
  const isRead = useRef<Timeline | null>(null);
  const isReady = timeline?.status.value.kind === 'ready';
  const list = timeline?.marks.list.value;
  // Written with the picture, so that a page that closes next keeps them.
  useLayoutEffect(() => {
    if (!timeline || !isReady || !list) return;
    if (isRead.current === timeline) {
      keepMarks(run, list);
      return;
    }
    isRead.current = timeline;
    if (params.marks === undefined && list.length === 0) timeline.marks.list.value = keptMarks(run);
  }, [timeline, isReady, list]);
}
