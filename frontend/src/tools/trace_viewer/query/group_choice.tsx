/** By what totals are grouped: a few keys as buttons, and any argument. */

import type { VNode } from 'preact';
import { tokensOf } from './tokens';

const KEYS = ['name', 'track', 'thread', 'step', 'category', 'module', 'kind', 'host'] as const;
const ARGUMENT = 'arg.';

export function GroupChoice({
  by,
  options,
  onChoose,
}: {
  by: string;
  /** Choices in front, such as the list of slices: value and title. */
  options?: readonly (readonly [string, string])[];
  onChoose(by: string): void;
}): VNode {
  const argument = by.startsWith(ARGUMENT) ? by.slice(ARGUMENT.length) : '';
  const isArgument = by.startsWith(ARGUMENT);
  return (
    <label class="tv-choice">
      Group by
      <select
        class="field"
        value={isArgument ? ARGUMENT : by}
        onChange={(event) => {
          onChoose(event.currentTarget.value);
        }}
      >
        {options?.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
        {KEYS.map((key) => (
          <option key={key} value={key}>
            {key}
          </option>
        ))}
        <option value={ARGUMENT}>argument…</option>
      </select>
      {isArgument && (
        <input
          class="field"
          aria-label="Argument to group by"
          placeholder="such as shape"
          spellcheck={false}
          value={argument}
          onChange={(event) => {
            onChoose(ARGUMENT + event.currentTarget.value.trim());
          }}
        />
      )}
    </label>
  );
}

/** Whether a key can be asked for: `arg.` without a name cannot yet. */
export function isKey(by: string): boolean {
  return by !== ARGUMENT;
}

/** The query that also demands a condition: alternatives are put in brackets. */
export function narrowed(query: string, condition: string): string {
  const isOr = tokensOf(query, null).some(({ kind, text }) => kind === 'joint' && /^(?:OR|\|)$/.test(text));
  return isOr ? `(${query}) ${condition}` : `${query} ${condition}`.trim();
}

/** The condition that leaves only the events of a group, for the keys that the language has. */
export function conditionOf(by: string, group: string): string | null {
  if (!group || by === 'track') return null;
  const value = /[\s"'\\]/.test(group) ? `"${group.replace(/[\\"]/g, '\\$&')}"` : group;
  if (by === 'thread') return `track=${value}`;
  return `${by.startsWith(ARGUMENT) && /[\s:=~<>]/.test(by) ? `${ARGUMENT}"${by.slice(ARGUMENT.length)}"` : by}=${value}`;
}
