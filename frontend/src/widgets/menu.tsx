/** A button that opens a list of actions; arrows move, Enter acts, Escape closes. */
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useDismiss } from './popup';
import './popup.css';

export interface MenuItem {
  label: string;
  note?: string;
  act(): void;
}

export interface PopupButtonProps {
  label: ComponentChildren;
  /** Screen-reader text; default: the label. */
  title?: string;
  children: ComponentChildren | ((close: () => void) => ComponentChildren);
  role?: 'menu' | 'dialog';
  small?: boolean;
  side?: 'left' | 'right';
  disabled?: boolean;
}

/** A button with any popup under it. */
export function PopupButton({
  label,
  title,
  children,
  role = 'dialog',
  small = false,
  side = 'right',
  disabled = false,
}: PopupButtonProps): VNode {
  const [isOpen, setOpen] = useState(false);
  const anchor = useRef<HTMLSpanElement>(null);
  const close = (): void => setOpen(false);
  useDismiss(anchor, isOpen, close);
  return (
    <span class="popup-anchor" ref={anchor}>
      <button
        type="button"
        class={small ? 'button small' : 'button'}
        aria-haspopup={role}
        aria-expanded={isOpen}
        aria-label={title}
        disabled={disabled}
        onClick={() => setOpen(!isOpen)}
      >
        {label}
      </button>
      {isOpen && (
        <div class={`popup ${side}`} role={role} aria-label={title}>
          {typeof children === 'function' ? children(close) : children}
        </div>
      )}
    </span>
  );
}

function MenuList({ items, close }: { items: readonly MenuItem[]; close: () => void }): VNode {
  const list = useRef<HTMLDivElement>(null);
  const focus = (n: number): void => {
    const buttons = list.current?.querySelectorAll('button') ?? [];
    buttons[(n + buttons.length) % buttons.length]?.focus();
  };
  useEffect(() => focus(0), []);
  const onKey = (event: KeyboardEvent): void => {
    const buttons = [...(list.current?.querySelectorAll('button') ?? [])];
    const index = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    focus(to);
  };
  return (
    <div ref={list} onKeyDown={onKey}>
      {items.map((item) => (
        <button
          key={item.label}
          type="button"
          role="menuitem"
          class="item"
          onClick={() => {
            close();
            item.act();
          }}
        >
          {item.label}
          {item.note && <small>{item.note}</small>}
        </button>
      ))}
    </div>
  );
}

export function Menu({
  label,
  items,
  title,
}: {
  label: string;
  items: readonly MenuItem[];
  title?: string;
}): VNode {
  return (
    <PopupButton label={label} role="menu" disabled={!items.length} {...(title ? { title } : {})}>
      {(close: () => void) => <MenuList items={items} close={close} />}
    </PopupButton>
  );
}
