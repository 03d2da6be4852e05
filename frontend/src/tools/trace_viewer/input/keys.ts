/**
 * Keys call the timeline's methods. They work immediately, without a click into the timeline, unless a field
 * has the focus or a dialog is open: in our own window and in TensorBoard's around it, which has the focus
 * right after the page opens.
 */

import { hostWindow } from '../../../base/frame';
import type { KeyHelp } from '../../../state/keys';
import type { HeldKey } from '../drawing/camera';
import { followFlow } from '../state/flows';
import { keepMark } from '../state/keeping';
import type { Timeline, Tool } from '../state/timeline';
import { walk } from '../state/walk';

export const KEYS: readonly KeyHelp[] = [
  { keys: 'w s', does: 'Zoom in and out at the pointer (hold)' },
  { keys: 'a d', does: 'Move left and right (hold)' },
  { keys: 'Wheel', does: 'Mouse: zoom at the pointer; over the names: scroll' },
  { keys: 'Two fingers, pinch', does: 'Touchpad: scroll tracks and time; zoom at the pointer' },
  { keys: 'Ctrl, Shift, Alt + wheel', does: 'Zoom, move in time, scroll the tracks, with any device' },
  { keys: '1 2 3 4', does: 'What a drag does: select a box, pan, zoom to a stretch, measure' },
  { keys: 'Click', does: 'Select an event: its details and related events' },
  {
    keys: 'Ctrl + click, x',
    does: 'Add an event to the selection or remove it (macOS: ⌘ + click); x: the selected event',
  },
  { keys: 'Shift + drag', does: 'Mark an interval, as a drag on the ruler does; its ends snap to events' },
  {
    keys: 'm',
    does: 'Mark the selected event’s interval, else that of the box under the pointer, else the window; a box that was drawn stays',
  },
  { keys: 'M', does: 'Keep the interval, else the selected event, else the window, as a mark with a name' },
  { keys: 'F2, Delete', does: 'On a mark: type its name, delete it' },
  { keys: 'c v', does: 'Compare the last two marks by their totals; draw both, starts aligned' },
  { keys: 'f, double click', does: 'Zoom to the selected event or interval' },
  { keys: '← →', does: 'Previous, next event of the row' },
  { keys: '↑ ↓', does: 'The enclosing event, the first within' },
  { keys: '[ ]', does: 'Follow an arrow to the cause, to the effect of the selected event' },
  { keys: '/', does: 'Find events: Tab completes, Enter goes to the next, Shift + Enter to the previous' },
  { keys: 'n N', does: 'Next, previous match' },
  { keys: 't', does: 'Tracks: only those with a text in their names, no empty ones, rows of each' },
  { keys: 'Minimap', does: 'Drag the window or its edges, or click elsewhere' },
  {
    keys: 'Names',
    does: 'Click folds, ← → show fewer or more rows, drag or Alt + ↑ ↓ moves; drag their edge for wider names',
  },
  { keys: '+ − 0', does: 'Zoom in, zoom out, the whole trace' },
  { keys: 'Esc', does: 'One step back: interval, selection, search, tool' },
  {
    keys: 'Back',
    does: 'The browser’s: undo the last leap (f, 0, a link, the minimap, a zoom by drag)',
  },
];

const TEXT_INPUTS = /^(text|search|number|email|url|tel|password|date|time|datetime-local|month|week)$/;

/** Letters typed here belong to the element, not to the timeline. */
export function isTyping(target: EventTarget | null): boolean {
  const element = target as (Partial<HTMLElement> & { type?: string }) | null;
  const tag = element?.tagName?.toLowerCase();
  if (tag === 'textarea' || tag === 'select' || element?.isContentEditable) return true;
  return tag === 'input' && TEXT_INPUTS.test(element?.type ?? 'text');
}

const HELD: Readonly<Record<string, HeldKey>> = { w: 'w', a: 'a', s: 's', d: 'd' };

export const TOOLS: readonly {
  readonly tool: Tool;
  readonly title: string;
  readonly key: string;
  readonly does: string;
}[] = [
  { tool: 'select', title: 'Select', key: '1', does: 'Drag a box for totals of its events' },
  { tool: 'pan', title: 'Pan', key: '2', does: 'Drag to move' },
  {
    tool: 'zoom',
    title: 'Zoom',
    key: '3',
    does: 'Drag a stretch to zoom to it; a click zooms in, Alt + click out',
  },
  {
    tool: 'measure',
    title: 'Measure',
    key: '4',
    does: 'Drag to mark an interval and see its length and totals',
  },
];

/** Adds the selected event to those that are selected together, or removes it. */
function addSelected(timeline: Timeline): boolean {
  const picked = timeline.selected.value;
  if (picked) timeline.addToSelection(picked);
  return picked !== null;
}

/** Performs the key's action; false: the key has none here. */
function pressKey(timeline: Timeline, key: string): boolean {
  const { camera, search } = timeline;
  const held = HELD[key.toLowerCase()];
  if (held) {
    camera.hold(held);
    return true;
  }
  const tool = TOOLS.find((each) => each.key === key);
  if (tool) {
    timeline.tool.value = tool.tool;
    return true;
  }
  switch (key) {
    case 'f':
      timeline.zoomToSelected();
      return true;
    case 'm':
      timeline.markSelected();
      return true;
    case 'x':
      return addSelected(timeline);
    case '[':
      return followFlow(timeline, 'cause');
    case ']':
      return followFlow(timeline, 'effect');
    case 'M':
      keepMark(timeline);
      return true;
    case 'c':
      timeline.marks.compare();
      return true;
    case 'v':
      timeline.marks.compare({ isBeside: !timeline.marks.pair.value?.isBeside });
      return true;
    case 'n':
      void search.go(1, camera.view.startPs);
      return true;
    case 'N':
      void search.go(-1, camera.view.startPs);
      return true;
    case 't':
      timeline.stack.menuCalls.value++;
      return true;
    case '0':
      camera.showAll();
      return true;
    case '+':
    case '=':
      camera.zoomBy(1 / 1.5);
      return true;
    case '-':
      camera.zoomBy(1.5);
      return true;
    case 'ArrowLeft':
      return walk(timeline, 'left');
    case 'ArrowRight':
      return walk(timeline, 'right');
    case 'ArrowUp':
      return walk(timeline, 'up');
    case 'ArrowDown':
      return walk(timeline, 'down');
    case 'Escape':
      return timeline.stepBack();
    default:
      return false;
  }
}

/** Keys that the page around the tool handles; it listens only to its own document. */
const PAGE_KEYS = new Set(['?', '/', '\\']);

/** Arrows there belong to the element: a table's cells, a menu's items, a handle to drag. */
function ownsArrows(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('table, [role=menu], [role=separator], .popup') !== null;
}

/** Returns a function that stops it. */
export function followKeys(timeline: Timeline): () => void {
  const down = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target))
      return;
    if (document.querySelector('dialog[open]') || (event.key.startsWith('Arrow') && ownsArrows(event.target)))
      return;
    if (pressKey(timeline, event.key)) event.preventDefault();
    else if (event.view !== window && PAGE_KEYS.has(event.key)) {
      event.preventDefault();
      window.focus();
      document.dispatchEvent(
        new KeyboardEvent('keydown', { key: event.key, bubbles: true, cancelable: true }),
      );
    }
  };
  const up = (event: KeyboardEvent): void => {
    const held = HELD[event.key.toLowerCase()];
    if (held) timeline.camera.release(held);
  };
  const blur = (): void => {
    timeline.camera.release();
  };
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
