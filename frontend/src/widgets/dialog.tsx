/**
 * A modal dialog: the browser's own, so that the page behind it is out of reach and Escape closes it; Tab
 * cycles within it.
 */
import type { ComponentChildren, VNode } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import './popup.css';

export interface DialogProps {
  title: string;
  children: ComponentChildren;
  /** Called on Escape, on the button and on a click outside the dialog. */
  onClose: () => void;
  /** The button's label; default: Close. */
  closeLabel?: string;
  wide?: boolean;
}

const FOCUSABLE =
  'a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary, [tabindex="0"]';

/** In an iframe Tab would leave for TensorBoard's header, which the dialog does not cover. */
function keepFocus(event: KeyboardEvent, box: HTMLElement | null): void {
  if (event.key !== 'Tab' || !box) return;
  const stops = [...box.querySelectorAll<HTMLElement>(FOCUSABLE)].filter(
    (element) => element.checkVisibility?.() ?? true,
  );
  const [from, to] = event.shiftKey ? [stops[0], stops.at(-1)] : [stops.at(-1), stops[0]];
  const isAtRadio =
    document.activeElement instanceof HTMLInputElement &&
    document.activeElement.type === 'radio' &&
    from instanceof HTMLInputElement &&
    from.name === document.activeElement.name;
  if (document.activeElement !== from && document.activeElement !== box && !isAtRadio) return;
  event.preventDefault();
  to?.focus();
}

function isBeside(event: MouseEvent, box: HTMLElement): boolean {
  const { left, right, top, bottom } = box.getBoundingClientRect();
  return event.clientX < left || event.clientX > right || event.clientY < top || event.clientY > bottom;
}

export function Dialog({ title, children, onClose, closeLabel = 'Close', wide = false }: DialogProps): VNode {
  const box = useRef<HTMLDialogElement>(null);
  const pressedBeside = useRef(false);
  const isGone = useRef(false);
  const id = useId();
  // Opened before the paint, and closed before it is removed: the browser then returns the focus to its
  // previous element.
  useLayoutEffect(() => {
    const shown = box.current;
    shown?.showModal();
    return () => {
      isGone.current = true;
      shown?.close();
    };
  }, []);
  const onPress = (event: MouseEvent): void => {
    const shown = box.current;
    pressedBeside.current = shown !== null && event.target === shown && isBeside(event, shown);
  };
  // A press inside that ends outside is a text selection.
  const onClick = (event: MouseEvent): void => {
    const shown = box.current;
    if (pressedBeside.current && shown && event.target === shown && isBeside(event, shown)) onClose();
  };
  return (
    <dialog
      ref={box}
      class={wide ? 'wide' : undefined}
      aria-labelledby={id}
      onClose={() => !isGone.current && onClose()}
      onKeyDown={(event) => keepFocus(event, box.current)}
      onPointerDown={onPress}
      onClick={onClick}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="button" data-tip={`${closeLabel}  Esc`} onClick={onClose}>
          {closeLabel}
        </button>
      </header>
      {children}
    </dialog>
  );
}
