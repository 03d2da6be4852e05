/**
 * Hands on the timeline: wheel, drag, click and keys become its methods.
 *
 * Over the boxes the wheel zooms at the pointer and pans with Shift or a sideways swipe; over the names it scrolls. Keys work
 * at once, without a click into the timeline, unless a text field has the focus.
 */

import { hostWindow } from '../../base/frame';
import type { HeldKey, Timeline } from './timeline';

const DRAG_FROM_PX = 4;
const LINE_PX = 16;
const ZOOM_PER_PX = 0.0016;
const PINCH_PER_PX = 0.01;

function pxOf(delta: number, mode: number): number {
  return mode === WheelEvent.DOM_DELTA_PIXEL ? delta : delta * (mode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 400);
}

function onWheel(timeline: Timeline, stage: HTMLElement, event: WheelEvent): void {
  const bounds = stage.getBoundingClientRect();
  const isOverNames = event.clientX < bounds.left;
  if (isOverNames && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const x = pxOf(event.deltaX, event.deltaMode);
  const y = pxOf(event.deltaY, event.deltaMode);
  if (event.ctrlKey || event.metaKey) timeline.zoomBy(Math.exp(y * PINCH_PER_PX), Math.max(0, event.clientX - bounds.left));
  else if (event.shiftKey) timeline.panByPx(x || y);
  else if (Math.abs(x) > Math.abs(y)) timeline.panByPx(x);
  else timeline.zoomBy(Math.exp(Math.max(-300, Math.min(300, y)) * ZOOM_PER_PX), event.clientX - bounds.left);
}

interface Drag {
  x: number;
  y: number;
  isMoving: boolean;
}

/** Pointer on the stage: hover, drag, click, double click. Returns what undoes it. */
function followPointer(timeline: Timeline, stage: HTMLElement): () => void {
  let drag: Drag | null = null;
  const at = (event: MouseEvent): { x: number; y: number } => {
    const bounds = stage.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  };
  const down = (event: PointerEvent): void => {
    if (event.button === 0) drag = { x: event.clientX, y: event.clientY, isMoving: false };
  };
  const move = (event: PointerEvent): void => {
    if (!drag) {
      timeline.point(at(event));
      return;
    }
    if (!drag.isMoving && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < DRAG_FROM_PX) return;
    if (!drag.isMoving) stage.setPointerCapture(event.pointerId);
    drag.isMoving = true;
    stage.classList.add('is-dragging');
    timeline.point(null);
    timeline.panByPx(drag.x - event.clientX);
    timeline.scrollBy(drag.y - event.clientY);
    drag.x = event.clientX;
    drag.y = event.clientY;
  };
  const up = (event: PointerEvent): void => {
    if (drag && !drag.isMoving && event.type === 'pointerup') timeline.selectAt(at(event).x, at(event).y);
    drag = null;
    stage.classList.remove('is-dragging');
  };
  const leave = (): void => { timeline.point(null); };
  const double = (event: MouseEvent): void => { timeline.zoomToBoxAt(at(event).x, at(event).y); };
  const handlers = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, pointerleave: leave, dblclick: double };
  for (const [type, handler] of Object.entries(handlers)) stage.addEventListener(type, handler as EventListener);
  return () => {
    for (const [type, handler] of Object.entries(handlers)) stage.removeEventListener(type, handler as EventListener);
  };
}

const TEXT_INPUTS = /^(text|search|number|email|url|tel|password|date|time|datetime-local|month|week)$/;

/** Letters typed here are meant for the element, not for the timeline. */
export function isTyping(target: EventTarget | null): boolean {
  const element = target as Partial<HTMLElement> & { type?: string } | null;
  const tag = element?.tagName?.toLowerCase();
  if (tag === 'textarea' || tag === 'select' || element?.isContentEditable) return true;
  return tag === 'input' && TEXT_INPUTS.test(element?.type ?? 'text');
}

const HELD: Readonly<Record<string, HeldKey>> = { w: 'w', a: 'a', s: 's', d: 'd' };

/** Does what the key means; false: the key means nothing here. */
export function pressKey(timeline: Timeline, key: string): boolean {
  const held = HELD[key.toLowerCase()];
  if (held) {
    timeline.hold(held);
    return true;
  }
  switch (key) {
    case 'f': timeline.zoomToSelected(); return true;
    case '0': timeline.showAll(); return true;
    case '+': case '=': timeline.zoomBy(1 / 1.5); return true;
    case '-': timeline.zoomBy(1.5); return true;
    case 'ArrowLeft': return timeline.selectNext('left');
    case 'ArrowRight': return timeline.selectNext('right');
    case 'ArrowUp': return timeline.selectNext('up');
    case 'ArrowDown': return timeline.selectNext('down');
    case 'Escape': {
      const isSelected = timeline.selected.value !== null;
      timeline.select(null);
      return isSelected;
    }
    default: return false;
  }
}

/** Keys of our own window and of the one around us: right after the page opens the focus is still out there. */
function followKeys(timeline: Timeline): () => void {
  const down = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    if (document.querySelector('dialog[open]')) return;
    if (pressKey(timeline, event.key)) event.preventDefault();
  };
  const up = (event: KeyboardEvent): void => {
    const held = HELD[event.key.toLowerCase()];
    if (held) timeline.release(held);
  };
  const blur = (): void => { timeline.release(); };
  const windows = new Set([window, hostWindow()]);
  for (const each of windows) {
    each.addEventListener('keydown', down);
    each.addEventListener('keyup', up);
    each.addEventListener('blur', blur);
  }
  return () => {
    for (const each of windows) {
      each.removeEventListener('keydown', down);
      each.removeEventListener('keyup', up);
      each.removeEventListener('blur', blur);
    }
  };
}

/** Connects everything; returns what disconnects it. */
export function attachGestures(timeline: Timeline, scroller: HTMLElement, stage: HTMLElement): () => void {
  const wheel = (event: WheelEvent): void => { onWheel(timeline, stage, event); };
  const scroll = (): void => { timeline.requestFrame(); };
  scroller.addEventListener('wheel', wheel, { passive: false });
  scroller.addEventListener('scroll', scroll, { passive: true });
  const undo = [followPointer(timeline, stage), followKeys(timeline)];
  return () => {
    scroller.removeEventListener('wheel', wheel);
    scroller.removeEventListener('scroll', scroll);
    for (const each of undo) each();
  };
}
