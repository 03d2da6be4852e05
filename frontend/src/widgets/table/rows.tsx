/** Which rows of a long table are drawn, and how drawn rows are reused while it scrolls. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import type { VNode } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

export const ROW_PX = 30;
/** Rows drawn above and below those on screen. */
const OVERSCAN = 6;

export interface RowRange {
  first: number;
  /** One beyond. */
  last: number;
  total: number;
  reveal: (row: number) => void;
}

/** The rows on screen and a few beyond; up to `inFull` rows are all of them. */
export function useRows(scroll: { current: HTMLDivElement | null }, count: number, inFull: number): RowRange {
  const [, redraw] = useState(0);
  const virtual = useRef<Virtualizer<HTMLDivElement, Element> | null>(null);
  const options = {
    count,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    initialRect: { width: 0, height: 600 },
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw((n) => n + 1),
  };
  virtual.current ??= new Virtualizer(options);
  virtual.current.setOptions(options);
  useLayoutEffect(() => virtual.current?._didMount(), []);
  useLayoutEffect(() => virtual.current?._willUpdate());
  const items = virtual.current.getVirtualItems();
  const reveal = (row: number): void => virtual.current?.scrollToIndex(row, { align: 'auto' });
  if (count <= inFull) return { first: 0, last: count, total: count, reveal: () => undefined };
  return { first: items[0]?.index ?? 0, last: (items.at(-1)?.index ?? -1) + 1, total: count, reveal };
}

/**
 * Draws the lines of a range. While `what` stays the same, a line with the same index and name is not drawn
 * again. A line's key should be its index: then sorting and searching change texts in existing elements, and
 * scrolling moves none.
 */
export function useKeptLines(
  what: readonly unknown[],
): (range: RowRange, count: number, nameOf: (at: number) => string, line: (at: number) => VNode) => VNode[] {
  const cache = useMemo(() => ({ lines: new Map<string, VNode>() }), what);
  return ({ first, last }, count, nameOf, line) => {
    const lines = new Map<string, VNode>();
    for (let index = first; index < Math.min(last, count); index++) {
      const name = `${index} ${nameOf(index)}`;
      lines.set(name, cache.lines.get(name) ?? line(index));
    }
    cache.lines = lines;
    return [...lines.values()];
  };
}

/** Space for the rows that are not drawn. */
export function Space({ nRows, nColumns }: { nRows: number; nColumns: number }): VNode | null {
  if (nRows <= 0) return null;
  return (
    <tr class="space" aria-hidden="true">
      <td colSpan={nColumns} style={{ height: `${nRows * ROW_PX}px` }} />
    </tr>
  );
}
