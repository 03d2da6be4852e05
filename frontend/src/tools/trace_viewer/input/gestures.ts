/**
 * Pointer input for the timeline: wheel, drag, pinch and click call its methods; each tool has its own kind
 * of drag.
 */

import { spanPs } from '../../../canvas/viewport';
import { boxOf, type Marked } from '../drawing/marked';
import { addAt, clickAt, isAdding } from './clicks';
import type { Timeline } from '../state/timeline';
import { Wheel, type Turn } from './wheel';

const DRAG_FROM_PX = 4;

interface Point {
  readonly x: number;
  readonly y: number;
}

/** One drag from its first move to its end. */
interface Drag {
  move(to: Point, by: Point): void;
  end(): void;
}

function panning(timeline: Timeline, from: Point): Drag {
  return {
    move: (_, by) => {
      timeline.camera.panByPx(-by.x);
      timeline.scrollBy(-by.y, from.y);
    },
    end: () => undefined,
  };
}

/** A time range that grows with the drag and is used at its end. */
function spanning(
  timeline: Timeline,
  from: Point,
  use: (marked: Marked) => void,
  spanOf: (to: Point) => Marked,
): Drag {
  let marked: Marked | null = null;
  return {
    move: (to) => {
      marked = spanOf(to);
      timeline.sketch(marked);
    },
    end: () => {
      timeline.sketch(null);
      if (marked && marked.endPs > marked.startPs) use(marked);
      else clickAt(timeline, from.x, from.y);
    },
  };
}

function ordered(a: number, b: number): { startPs: number; endPs: number } {
  return { startPs: Math.min(a, b), endPs: Math.max(a, b) };
}

const SNAP_PX = 6;

/** The edge of a box near the pointer, else the time there. */
function snapped(timeline: Timeline, { x, y }: Point): number {
  const pointerPs = timeline.camera.timeAt(x);
  const picked = timeline.find(x, y);
  if (!picked) return Math.round(pointerPs);
  const reachPs = (SNAP_PX / timeline.camera.widthPx) * spanPs(timeline.camera.view);
  const edges = [picked.startPs, picked.startPs + picked.durationPs].map((edge) => ({
    edge,
    gap: Math.abs(edge - pointerPs),
  }));
  const nearest = edges.sort((a, b) => a.gap - b.gap)[0];
  return nearest && nearest.gap <= reachPs ? nearest.edge : Math.round(pointerPs);
}

function measuring(timeline: Timeline, from: Point): Drag {
  const fromPs = snapped(timeline, from);
  return spanning(
    timeline,
    from,
    (marked) => {
      timeline.mark(marked);
    },
    (to) => ({ ...ordered(fromPs, snapped(timeline, to)), trackIds: null, depths: null }),
  );
}

function zooming(timeline: Timeline, from: Point): Drag {
  const fromPs = timeline.camera.timeAt(from.x);
  return spanning(
    timeline,
    from,
    (marked) => {
      timeline.camera.leap(marked);
    },
    (to) => ({ ...ordered(fromPs, timeline.camera.timeAt(to.x)), trackIds: null, depths: null }),
  );
}

function boxing(timeline: Timeline, from: Point): Drag {
  const fromPs = Math.round(timeline.camera.timeAt(from.x));
  const fromY = timeline.contentAt(from.y);
  return spanning(
    timeline,
    from,
    (marked) => {
      timeline.mark(marked);
    },
    (to) =>
      boxOf(
        timeline.layout.value,
        fromPs,
        Math.round(timeline.camera.timeAt(to.x)),
        fromY,
        timeline.contentAt(Math.max(to.y, timeline.layout.value.topPx)),
      ),
  );
}

function dragOf(timeline: Timeline, from: Point, isShifted: boolean): Drag {
  const tool = timeline.tool.value;
  if (isShifted || tool === 'measure' || from.y < timeline.layout.value.topPx)
    return measuring(timeline, from);
  if (tool === 'zoom') return zooming(timeline, from);
  return tool === 'select' ? boxing(timeline, from) : panning(timeline, from);
}

/** Two fingers on a touch screen: the time and tracks between them stay between them. */
class Pinch {
  private readonly fingers = new Map<number, Point>();

  get isActive(): boolean {
    return this.fingers.size > 1;
  }

  down(id: number, position: Point): void {
    this.fingers.set(id, position);
  }

  up(id: number): void {
    this.fingers.delete(id);
  }

  move(id: number, position: Point, timeline: Timeline): void {
    if (!this.fingers.has(id)) return;
    const before = this.spread();
    this.fingers.set(id, position);
    const after = this.spread();
    if (!before || !after || !this.isActive) return;
    timeline.camera.panByPx(before.middle - after.middle);
    timeline.camera.zoomBy(before.widthPx / after.widthPx, after.middle);
  }

  private spread(): { middle: number; widthPx: number } | null {
    const [a, b] = [...this.fingers.values()];
    return a && b
      ? { middle: (a.x + b.x) / 2, widthPx: Math.max(20, Math.hypot(a.x - b.x, a.y - b.y)) }
      : null;
  }
}

/** Pointer on the stage: hover, drag, pinch, click, double click. Returns a function that disconnects it. */
function followPointer(timeline: Timeline, stage: HTMLElement): () => void {
  let start: Point | null = null;
  let last: Point = { x: 0, y: 0 };
  let drag: Drag | null = null;
  const pinch = new Pinch();
  const positionOf = (event: MouseEvent): Point => {
    const bounds = stage.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  };
  const down = (event: PointerEvent): void => {
    if (event.pointerType === 'touch') pinch.down(event.pointerId, positionOf(event));
    if (event.button === 0) start = last = positionOf(event);
  };
  const move = (event: PointerEvent): void => {
    const to = positionOf(event);
    if (event.pointerType === 'touch') pinch.move(event.pointerId, to, timeline);
    if (pinch.isActive) return;
    if (!start) {
      timeline.point(to);
      return;
    }
    if (!drag) {
      if (Math.hypot(to.x - start.x, to.y - start.y) < DRAG_FROM_PX) return;
      stage.setPointerCapture(event.pointerId);
      stage.classList.add('is-dragging');
      timeline.point(null);
      drag = dragOf(timeline, start, event.shiftKey);
    }
    drag.move(to, { x: to.x - last.x, y: to.y - last.y });
    last = to;
  };
  const click = (event: PointerEvent, point: Point): void => {
    if (isAdding(event)) addAt(timeline, point.x, point.y);
    else if (timeline.tool.value === 'zoom') timeline.camera.zoomBy(event.altKey ? 2 : 0.5, point.x);
    else clickAt(timeline, point.x, point.y);
  };
  const up = (event: PointerEvent): void => {
    pinch.up(event.pointerId);
    if (drag) drag.end();
    else if (start && event.type === 'pointerup') click(event, start);
    drag = null;
    start = null;
    stage.classList.remove('is-dragging');
  };
  const leave = (): void => {
    timeline.point(null);
  };
  const double = (event: MouseEvent): void => {
    if (!isAdding(event)) timeline.zoomToBoxAt(positionOf(event).x, positionOf(event).y);
  };
  const handlers = {
    pointerdown: down,
    pointermove: move,
    pointerup: up,
    pointercancel: up,
    pointerleave: leave,
    dblclick: double,
  };
  for (const [type, handler] of Object.entries(handlers))
    stage.addEventListener(type, handler as EventListener);
  return () => {
    for (const [type, handler] of Object.entries(handlers))
      stage.removeEventListener(type, handler as EventListener);
  };
}

function followWheel(timeline: Timeline, scroller: HTMLElement, stage: HTMLElement): () => void {
  const wheel = new Wheel();
  const onWheel = (event: WheelEvent): void => {
    const bounds = stage.getBoundingClientRect();
    const isZoomKey = event.ctrlKey || event.metaKey;
    // Over the names the wheel scrolls, as over any list.
    if (event.clientX < bounds.left && !isZoomKey) return;
    event.preventDefault();
    const act = wheel.turn(event as Turn, event.timeStamp);
    if (act.act === 'zoom') timeline.camera.zoomBy(act.factor, Math.max(0, event.clientX - bounds.left));
    else {
      if (act.x !== 0) timeline.camera.panByPx(act.x);
      if (act.y !== 0) timeline.scrollBy(act.y, event.clientY - bounds.top);
    }
  };
  scroller.addEventListener('wheel', onWheel, { passive: false });
  return () => {
    scroller.removeEventListener('wheel', onWheel);
  };
}

/** Connects everything; returns a function that disconnects it. */
export function attachGestures(timeline: Timeline, scroller: HTMLElement, stage: HTMLElement): () => void {
  const scroll = (): void => {
    timeline.requestFrame();
  };
  scroller.addEventListener('scroll', scroll, { passive: true });
  const undo = [followPointer(timeline, stage), followWheel(timeline, scroller, stage)];
  return () => {
    scroller.removeEventListener('scroll', scroll);
    for (const each of undo) each();
  };
}
