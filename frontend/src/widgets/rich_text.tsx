/** Plain text whose `backticked` words are set as code. Never HTML. */
import type { VNode } from 'preact';
import { unbroken } from '../base/units';

export function RichText({ text }: { text: string }): VNode {
  return <>{text.split('`').map((part, i) => (i % 2 ? <code key={i}>{part}</code> : unbroken(part)))}</>;
}
