/**
 * A path such as `Iterator::Root::Map` in a narrow cell: cut at its beginning, since its end is what tells.
 */
import type { VNode } from 'preact';

export function Tail({ text }: { text: string }): VNode {
  return (
    <span class="tail">
      <bdi>{text}</bdi>
    </span>
  );
}
