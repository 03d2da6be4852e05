/** A choice of one of a few, as buttons side by side. */
import type { VNode } from 'preact';
import './segments.css';

export interface SegmentsProps {
  label: string;
  choices: readonly { name: string; title: string }[];
  chosen: string;
  onChoose: (name: string) => void;
}

export function Segments({ label, choices, chosen, onChoose }: SegmentsProps): VNode {
  return (
    <span class="segments" role="group" aria-label={label}>
      {choices.map(({ name, title }) => (
        <button
          key={name}
          type="button"
          class="button small"
          aria-pressed={name === chosen}
          onClick={() => onChoose(name)}
        >
          {title}
        </button>
      ))}
    </span>
  );
}
