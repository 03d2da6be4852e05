/** The query line's text in colors. */

import type { VNode } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { tokensOf } from './tokens';

/**
 * Drawn exactly below the text of the field, which is transparent. Read by no one but the eye; the error itself
 * is an alert.
 */
export function ColoredText({
  text,
  wrongAt,
  field,
}: {
  text: string;
  /** The index of the character that an error is about; null: there is none. */
  wrongAt: number | null;
  field: { readonly current: HTMLInputElement | null };
}): VNode {
  const layer = useRef<HTMLDivElement>(null);
  const tokens = useMemo(() => tokensOf(text, wrongAt), [text, wrongAt]);
  // A long query scrolls within the field, also by itself at the caret.
  useLayoutEffect(() => {
    const input = field.current;
    const follow = (): void => {
      if (layer.current && input) layer.current.scrollLeft = input.scrollLeft;
    };
    follow();
    input?.addEventListener('scroll', follow);
    return () => input?.removeEventListener('scroll', follow);
  }, [text]);
  return (
    <div class="tv-colored" aria-hidden="true" ref={layer}>
      {tokens.map((token, index) => (
        <span key={index} class={`tv-token-${token.kind}${token.isWrong ? ' is-wrong' : ''}`}>
          {token.text}
        </span>
      ))}
    </div>
  );
}
