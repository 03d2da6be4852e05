/** A modal dialog: the browser's own, so focus stays in it and Escape closes it. */
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import './popup.css';

export function Dialog({ title, children, onClose }: { title: string; children: ComponentChildren; onClose: () => void }): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const onClick = (event: MouseEvent): void => {
    if (event.target === dialog.current) onClose();
  };
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose} onClick={onClick}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
      </header>
      {children}
    </dialog>
  );
}
