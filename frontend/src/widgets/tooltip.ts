/**
 * One tooltip for the page: any element with `data-tip` shows that text on hover and on keyboard focus, with
 * `data-tip-formula` set as code and `data-tip-more` in a muted line below; Escape hides it. In a grid, the
 * active cell shows its own if its value is unknown.
 */
import './tooltip.css';

const DELAY_MS = 250;
const GAP_PX = 6;
const ID = 'tooltip';

function place(tip: HTMLElement, anchor: Element): void {
  const anchorBox = anchor.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const below = anchorBox.bottom + GAP_PX;
  const top = below + height > window.innerHeight ? Math.max(0, anchorBox.top - GAP_PX - height) : below;
  const left = Math.max(GAP_PX, Math.min(anchorBox.left, window.innerWidth - width - GAP_PX));
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}

function line(tag: 'p' | 'code' | 'small', text: string | null): HTMLElement[] {
  if (!text) return [];
  const element = document.createElement(tag);
  element.textContent = text;
  return [element];
}

function fill(tip: HTMLElement, anchor: Element, text: string): void {
  tip.replaceChildren(
    ...line('p', text),
    ...line('code', anchor.getAttribute('data-tip-formula')),
    ...line('small', anchor.getAttribute('data-tip-more')),
  );
}

/** The active cell of a grid that has the keyboard focus, if it shows an unknown value. */
function activeUnknown(grid: EventTarget | null): Element | null {
  const id = grid instanceof Element ? grid.getAttribute('aria-activedescendant') : null;
  const cell = id ? document.getElementById(id) : null;
  return cell?.classList.contains('unknown') ? cell : null;
}

/** Starts showing `data-tip` texts; returns a function that stops it. */
export function serveTooltips(root: HTMLElement): () => void {
  const tip = document.createElement('div');
  tip.id = ID;
  tip.className = 'tooltip';
  tip.setAttribute('role', 'tooltip');
  tip.style.left = '0';
  tip.style.top = '0';
  tip.hidden = true;
  root.append(tip);
  let timer: number | undefined;
  let anchor: Element | null = null;
  /** The element that the tooltip describes: the focused one, which may lie within the anchor. */
  let described: Element | null = null;

  const hide = (): void => {
    window.clearTimeout(timer);
    if (described?.getAttribute('aria-describedby') === ID) described.removeAttribute('aria-describedby');
    anchor = null;
    described = null;
    tip.hidden = true;
  };
  const show = (): void => {
    const text = anchor?.getAttribute('data-tip');
    if (!anchor?.isConnected || !text) return hide();
    fill(tip, anchor, text);
    tip.hidden = false;
    if (described && !described.hasAttribute('aria-describedby'))
      described.setAttribute('aria-describedby', ID);
    place(tip, anchor);
  };
  const aimAt = (next: Element | null, of: Element | null): void => {
    if (next === anchor) return;
    hide();
    if (!next?.getAttribute('data-tip')) return;
    anchor = next;
    described = of;
    timer = window.setTimeout(show, DELAY_MS);
  };
  const aim = (event: Event): void => {
    const { target } = event;
    if (!(target instanceof Element)) return aimAt(null, null);
    const next = target.closest('[data-tip]');
    aimAt(next, event.type === 'focusin' ? target : next);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') hide();
  };
  /** The anchor moves; what scrolls elsewhere on the page does not matter. */
  const onScroll = (event: Event): void => {
    if (!anchor || !(event.target instanceof Node) || !event.target.contains(anchor)) return;
    if (!anchor.contains(document.activeElement)) hide();
    else if (!tip.hidden) place(tip, anchor); // the focus itself scrolls the page to its element
  };
  const onKeyUp = (event: KeyboardEvent): void => {
    if (event.key === 'Escape' || !(event.target instanceof Element)) return;
    if (!event.target.hasAttribute('aria-activedescendant')) return;
    const cell = activeUnknown(event.target);
    aimAt(cell, cell);
  };

  root.addEventListener('pointerover', aim);
  root.addEventListener('focusin', aim);
  root.addEventListener('pointerdown', hide);
  root.addEventListener('keydown', onKey);
  root.addEventListener('keyup', onKeyUp);
  root.addEventListener('scroll', onScroll, true);
  root.addEventListener('pointerleave', hide);
  return () => {
    hide();
    tip.remove();
    root.removeEventListener('pointerover', aim);
    root.removeEventListener('focusin', aim);
    root.removeEventListener('pointerdown', hide);
    root.removeEventListener('keydown', onKey);
    root.removeEventListener('keyup', onKeyUp);
    root.removeEventListener('scroll', onScroll, true);
    root.removeEventListener('pointerleave', hide);
  };
}
