/**
 * Pointer and keyboard input of a graph: the wheel and + − 0 zoom, a drag moves. graph_viewport.ts computes
 * the resulting view.
 */
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isTyping } from '../state/keys';
import { panView, zoomView, type Size, type View } from './graph_viewport';

const DRAG_FROM_PX = 4;
const ZOOM_PER_PX = 0.0016;
const LINE_PX = 16;
const KEY_FACTOR = 1.25;

export interface Hands {
  box: Size;
  view: View;
  setView: (view: View) => void;
  fit: () => void;
}

/** The size of an element, updated as it changes. */
export function useSize(element: RefObject<Element>, initial: Size): Size {
  const [size, setSize] = useState(initial);
  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const read = (): void => {
      const { width, height } = box.getBoundingClientRect();
      if (width > 0) setSize({ width, height });
    };
    const watch = new ResizeObserver(read);
    watch.observe(box);
    read();
    return () => watch.disconnect();
  }, []);
  return size;
}

/**
 * The wheel zooms while the graph has the focus (after a click into it), or with Ctrl; otherwise the page
 * scrolls.
 */
function wheelTo(hands: Hands, frame: Element, event: WheelEvent): void {
  if (!event.ctrlKey && !event.metaKey && !frame.contains(document.activeElement)) return;
  event.preventDefault();
  const { left, top } = frame.getBoundingClientRect();
  const deltaPx = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : LINE_PX);
  const factor = Math.exp(-Math.max(-300, Math.min(300, deltaPx)) * ZOOM_PER_PX);
  hands.setView(zoomView(hands.view, factor, hands.box, { x: event.clientX - left, y: event.clientY - top }));
}

function dragOn(frame: HTMLElement, latest: RefObject<Hands>): () => void {
  let from: { x: number; y: number; view: View } | null = null;
  let isMoving = false;
  const down = (event: PointerEvent): void => {
    if (event.button === 0 && latest.current)
      from = { x: event.clientX, y: event.clientY, view: latest.current.view };
  };
  const move = (event: PointerEvent): void => {
    if (!from) return;
    const [x, y] = [event.clientX - from.x, event.clientY - from.y];
    if (!isMoving && Math.hypot(x, y) < DRAG_FROM_PX) return;
    // Captured only now: a plain click must still reach the stage under it.
    if (!isMoving) frame.setPointerCapture(event.pointerId);
    isMoving = true;
    frame.classList.add('is-dragging');
    latest.current?.setView(panView(from.view, x, y));
  };
  const up = (): void => {
    from = null;
    isMoving = false;
    frame.classList.remove('is-dragging');
  };
  frame.addEventListener('pointerdown', down);
  frame.addEventListener('pointermove', move);
  frame.addEventListener('pointerup', up);
  frame.addEventListener('pointercancel', up);
  return () => {
    frame.removeEventListener('pointerdown', down);
    frame.removeEventListener('pointermove', move);
    frame.removeEventListener('pointerup', up);
    frame.removeEventListener('pointercancel', up);
  };
}

function keyTo(hands: Hands, event: KeyboardEvent): boolean {
  if (event.key === '0') hands.fit();
  else if (event.key === '+' || event.key === '=') hands.setView(zoomView(hands.view, KEY_FACTOR, hands.box));
  else if (event.key === '-') hands.setView(zoomView(hands.view, 1 / KEY_FACTOR, hands.box));
  else return false;
  return true;
}

export function useHands(frame: RefObject<HTMLElement>, hands: Hands): void {
  const latest = useRef(hands);
  latest.current = hands;
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const wheel = (event: WheelEvent): void => wheelTo(latest.current, element, event);
    const key = (event: KeyboardEvent): void => {
      if (!isTyping(event) && !document.querySelector('dialog[open]') && keyTo(latest.current, event))
        event.preventDefault();
    };
    const release = dragOn(element, latest);
    element.addEventListener('wheel', wheel, { passive: false });
    document.addEventListener('keydown', key);
    return () => {
      release();
      element.removeEventListener('wheel', wheel);
      document.removeEventListener('keydown', key);
    };
  }, []);
}
