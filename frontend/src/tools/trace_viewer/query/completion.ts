/** What can be written at the caret of the query line: fields, arguments, and the values of some fields. */

import type { QueryField } from '../data/query_model';

export interface Completion {
  /** Replaces the word at the caret. */
  readonly text: string;
  readonly meaning: string;
}

export interface Completions {
  readonly from: number;
  readonly to: number;
  readonly items: readonly Completion[];
}

/** Values of the fields that have few, by field. */
export type FieldValues = ReadonlyMap<string, readonly string[]>;

const MOST = 8;
const VALUE = /^((?:-?\()*-?)(track|section|thread|kind|host)([:=])(.*)$/s;
const FIELD = /^((?:-?\()*-?)((?:arg\.)?"?[\w.% -]*)$/;

/** The word that ends at the caret, from the last space outside of quotes. */
function wordAt(text: string, caret: number): number {
  let start = 0;
  let quote = '';
  for (let i = 0; i < caret; i++) {
    const letter = text[i] as string;
    if (quote) quote = letter === quote ? '' : quote;
    else if (letter === '"' || letter === "'") quote = letter;
    else if (/\s/.test(letter)) start = i + 1;
  }
  return start;
}

function written(value: string): string {
  return /[\s"']/.test(value) ? `"${value.replace(/[\\"]/g, '\\$&')}"` : value;
}

/** Fields come with the operator that suits them. */
function operatorOf({ kind, field }: QueryField): string {
  if (field === 'arg') return '.';
  return kind === 'time' ? '>' : ':';
}

function starting(items: Completion[], typed: string): Completion[] {
  const needle = typed.toLowerCase();
  const bare = (text: string): string => text.toLowerCase().replace(/"/g, '');
  const begins = items.filter(({ text }) => bare(text).startsWith(needle));
  const within = items.filter(({ text }) => !bare(text).startsWith(needle) && bare(text).includes(needle));
  return [...begins, ...(needle ? within : [])].slice(0, MOST);
}

export function completionsAt(
  text: string,
  caret: number,
  fields: readonly QueryField[],
  values: FieldValues,
): Completions {
  const from = wordAt(text, caret);
  const word = text.slice(from, caret);
  const value = VALUE.exec(word);
  if (value) {
    const [, minus = '', field = '', operator = '', typed = ''] = value;
    const items = (values.get(field) ?? []).map((each) => ({
      text: `${minus}${field}${operator}${written(each)} `,
      meaning: '',
    }));
    const bare = typed.replace(/["']/g, '').toLowerCase();
    return {
      from,
      to: caret,
      items: items.filter((_, i) => values.get(field)?.[i]?.toLowerCase().includes(bare)).slice(0, MOST),
    };
  }
  const name = FIELD.exec(word);
  if (!name) return { from, to: caret, items: [] };
  const [, minus = '', typed = ''] = name;
  const isArgument = typed.startsWith('arg.');
  const chosen = fields.filter(({ field }) => field.startsWith('arg.') === isArgument);
  const items = chosen.map((field) => ({
    text: `${minus}${field.field}${operatorOf(field)}`,
    meaning: field.meaning,
  }));
  return { from, to: caret, items: starting(items, (minus + typed).replace(/"/g, '')) };
}

/** The text with a completion in place, and the caret after it. */
export function completed(
  text: string,
  { from, to }: Completions,
  { text: inserted }: Completion,
): { text: string; caret: number } {
  return {
    text: text.slice(0, from) + inserted + text.slice(to).replace(/^ /, ''),
    caret: from + inserted.length,
  };
}
