/**
 * One tooltip for the page: any element with `data-tip` shows that text on hover and on keyboard focus;
 * Escape hides it.
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

  const hide = (): void => {
    window.clearTimeout(timer);
    if (anchor?.getAttribute('aria-describedby') === ID) anchor.removeAttribute('aria-describedby');
    anchor = null;
    tip.hidden = true;
  };
  const show = (): void => {
    const text = anchor?.getAttribute('data-tip');
    if (!anchor?.isConnected || !text) return hide();
    tip.textContent = text;
    tip.hidden = false;
    if (!anchor.hasAttribute('aria-describedby')) anchor.setAttribute('aria-describedby', ID);
    place(tip, anchor);
  };
  const aim = (event: Event): void => {
    const next = event.target instanceof Element ? event.target.closest('[data-tip]') : null;
    if (next === anchor) return;
    hide();
    if (!next?.getAttribute('data-tip')) return;
    anchor = next;
    timer = window.setTimeout(show, DELAY_MS);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') hide();
  };

  root.addEventListener('pointerover', aim);
  root.addEventListener('focusin', aim);
  root.addEventListener('pointerdown', hide);
  root.addEventListener('keydown', onKey);
  root.addEventListener('scroll', hide, true);
  root.addEventListener('pointerleave', hide);
  return () => {
    hide();
    tip.remove();
    root.removeEventListener('pointerover', aim);
    root.removeEventListener('focusin', aim);
    root.removeEventListener('pointerdown', hide);
    root.removeEventListener('keydown', onKey);
    root.removeEventListener('scroll', hide, true);
    root.removeEventListener('pointerleave', hide);
  };
}
