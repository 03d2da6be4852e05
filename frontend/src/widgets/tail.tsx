/**
 * A path such as `Iterator::Root::Map` in a narrow cell: truncated at its beginning, since its end identifies
 * it.
 */
import type { VNode } from 'preact';

export function Tail({ text }: { text: string }): VNode {
  return (
    <span class="tail">
      <bdi>{text}</bdi>
    </span>
  );
}
