/**
 * Two windows one below the other on one axis: the second timeline follows the first at the distance of their
 * starts, and the first follows it while the pointer is over the second.
 */

import { useSignalEffect } from '@preact/signals';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { format } from '../../../base/units';
import { isSameViewport, type Viewport } from '../../../canvas/viewport';
import { attachGestures } from '../input/gestures';
import { Icon } from '../../../widgets/icons';
import type { Fetch } from '../data/loader';
import { letterOf, type Mark, type Pair } from '../state/marks';
import { tokenOf } from './row';
import { Timeline } from '../state/timeline';

interface Frame {
  readonly timeline: Timeline | null;
  readonly scroller: { current: HTMLDivElement | null };
  readonly host: { current: HTMLDivElement | null };
}

function shifted({ startPs, endPs }: Viewport, byPs: number): Viewport {
  return { startPs: startPs + byPs, endPs: endPs + byPs };
}

/** The window around both, from a little before their starts to a little after the end of the longer one. */
export function viewOfBoth(a: Mark, b: Mark): Viewport {
  const lengthPs = Math.max(a.endPs - a.startPs, b.endPs - b.startPs);
  return { startPs: a.startPs - lengthPs * 0.03, endPs: a.startPs + lengthPs * 1.03 };
}

/** Keeps the windows of two timelines a distance apart; returns a function that ends it. */
export function keepApart(first: Timeline, second: Timeline, stage: HTMLElement, byPs: number): () => void {
  let isSecondLeading = false;
  let wanted: Viewport | null = null;
  const follow = (): void => {
    const [leader, other, distance] = isSecondLeading ? [second, first, -byPs] : [first, second, byPs];
    const to = shifted(leader.camera.view, distance);
    // At the trace's ends the other may be unable to follow: it is asked once for each window.
    if (isSameViewport(other.camera.view, to) || (wanted && isSameViewport(wanted, to))) return;
    wanted = to;
    other.camera.set(to);
  };
  const enter = (): void => {
    isSecondLeading = true;
  };
  const leave = (): void => {
    isSecondLeading = false;
  };
  for (const { camera } of [first, second]) camera.isFree = true;
  const undo = [first.onFrame(follow), second.onFrame(follow)];
  stage.addEventListener('pointerenter', enter);
  stage.addEventListener('pointerleave', leave);
  follow();
  return () => {
    for (const each of undo) each();
    stage.removeEventListener('pointerenter', enter);
    stage.removeEventListener('pointerleave', leave);
    first.camera.isFree = false;
    first.camera.set(first.camera.view);
  };
}

/** Scrolls the tracks of two timelines together; returns a function that ends it. */
export function scrollTogether(first: Timeline, second: Timeline): () => void {
  /** Where a timeline was scrolled to by the other: it does not lead from there. */
  const followed = new Map<HTMLElement, number>();
  const lead = (leader: HTMLElement, other: HTMLElement): void => {
    if (followed.get(leader) === leader.scrollTop) return;
    followed.delete(leader);
    other.scrollTop = leader.scrollTop;
    followed.set(other, other.scrollTop); // the shorter one may be unable to follow
  };
  const [one, two] = [first.scroller, second.scroller];
  const ended = new AbortController();
  const { signal } = ended;
  one.addEventListener(
    'scroll',
    () => {
      lead(one, two);
    },
    { signal },
  );
  two.addEventListener(
    'scroll',
    () => {
      lead(two, one);
    },
    { signal },
  );
  const undo = [
    first.pinScrollPx.subscribe((px) => {
      second.stack.scrollPins(px - second.pinScrollPx.peek());
    }),
    second.pinScrollPx.subscribe((px) => {
      first.stack.scrollPins(px - first.pinScrollPx.peek());
    }),
  ];
  lead(one, two);
  return () => {
    ended.abort();
    for (const each of undo) each();
  };
}

/** The second timeline, with the first one's tracks, scroll position and selection. */
function useSecond(first: Timeline, fetch: Fetch, scope: string): Frame {
  const scroller = useRef<HTMLDivElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const [timeline, setTimeline] = useState<Timeline | null>(null);
  useLayoutEffect(() => {
    const [scrolled, stage] = [scroller.current, host.current];
    if (!scrolled || !stage) return;
    const fresh = new Timeline(scrolled, stage, fetch, first.renderer === 'webgl' ? 'webgl' : 'canvas2d');
    const undo = attachGestures(fresh, scrolled, stage);
    const resized = new ResizeObserver(() => {
      fresh.resize(stage.clientWidth, stage.clientHeight);
    });
    resized.observe(stage);
    fresh.resize(stage.clientWidth, stage.clientHeight);
    const rethemed = new MutationObserver(() => {
      fresh.retheme();
    });
    rethemed.observe(document.documentElement, { attributes: true, attributeFilter: ['class'] });
    void fresh.start(first.camera.view, () => {
      setTimeline(fresh);
      return Promise.resolve();
    });
    return () => {
      undo();
      resized.disconnect();
      rethemed.disconnect();
      fresh.dispose();
      setTimeline(null);
    };
  }, [first, scope]);
  return { timeline, scroller, host };
}

function useSameState(first: Timeline, second: Timeline | null): void {
  useSignalEffect(() => {
    const view = first.trackView.value;
    if (second && second.trackView.peek() !== view) second.changeTracks(view);
  });
  useSignalEffect(() => {
    const selected = first.selected.value;
    if (second && second.selected.peek()?.event !== selected?.event) second.select(selected);
  });
  useSignalEffect(() => {
    second?.selectSeveral(first.several.events.value);
  });
  useSignalEffect(() => {
    const [text, of] = [first.search.text.value, first.search.of.value];
    second?.search.count(of);
    second?.search.set(text);
  });
  useEffect(() => (second ? scrollTogether(first, second) : undefined), [first, second]);
  useEffect(() => {
    if (!second) return;
    second.selectSeveral(first.several.events.peek()); // before it leads
    const undo = [
      second.selected.subscribe((selected) => {
        if (selected && first.selected.peek()?.event !== selected.event) first.select(selected);
      }),
      second.several.events.subscribe((events) => {
        first.selectSeveral(events);
      }),
    ];
    return () => {
      for (const each of undo) each();
    };
  }, [first, second]);
  useEffect(() => {
    if (!second) return;
    second.tool.value = first.tool.value;
    second.marks.list.value = first.marks.list.value;
    second.changeTracks(first.trackView.value);
    second.select(first.selected.value);
    second.search.count(first.search.of.value);
    second.search.set(first.search.text.value);
  }, [first, second, first.tool.value, first.marks.list.value]);
}

export interface BesideProps {
  readonly first: Timeline;
  readonly fetch: Fetch;
  readonly scope: string;
  readonly pair: Pair;
  /** Whether the link has a window: it stays. */
  readonly hasWindow: boolean;
  frame(parts: Frame): ComponentChildren;
}

export function Beside({ first, fetch, scope, pair, hasWindow, frame }: BesideProps): VNode | null {
  const parts = useSecond(first, fetch, scope);
  const { timeline: second } = parts;
  const list = first.marks.list.value;
  const [a, b] = [list[pair.a], list[pair.b]];
  const wasPlaced = useRef(hasWindow);
  useSameState(first, second);
  useEffect(() => {
    const stage = parts.host.current;
    if (!a || !b || !second || !stage) return;
    const undo = keepApart(first, second, stage, b.startPs - a.startPs);
    if (!wasPlaced.current) first.camera.leap(viewOfBoth(a, b));
    wasPlaced.current = false;
    return undo;
  }, [first, second, a?.startPs, b?.startPs, a?.endPs, b?.endPs]);
  if (!a || !b) return null;
  return (
    <div class="tv-beside">
      <p class="tv-beside-title">
        <b class="tv-letter" style={{ '--mark': tokenOf(pair.b) }}>
          {letterOf(pair.b)}
        </b>
        {b.name} {format(b.endPs - b.startPs, 'ps')}
        <span class="muted">
          below {letterOf(pair.a)}
          {a.name ? ` ${a.name}` : ''}, starts aligned
        </span>
        <button
          type="button"
          class="tv-close"
          aria-label="Close the second window"
          data-tip="Close  v"
          onClick={() => {
            first.marks.compare({ isBeside: false });
          }}
        >
          <Icon name="hide" />
        </button>
      </p>
      {frame(parts)}
    </div>
  );
}
