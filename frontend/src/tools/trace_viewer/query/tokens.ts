/** The query line in parts for coloring: fields, operators, values, OR and brackets. The server's parser decides. */

type TokenKind = 'field' | 'operator' | 'joint' | 'text' | 'space';

export interface Token {
  readonly text: string;
  readonly kind: TokenKind;
  /** The server's parser stopped here. */
  readonly isWrong: boolean;
}

/** As in analysis/query/grammar.py; a test compares them. */
const FIELDS = 'name|dur|self|start|track|section|thread|kind|host|step|category|module|arg|any';
const OPERATOR = '>=|<=|>|<|=|~|:(?!:)';
const CONDITION = new RegExp(
  `^(-?)((?:arg\\.(?:"[^"]*"|[^\\s:=~<>"]+))|(?:${FIELDS}))((?:\\s+(?=[<>=~:]))?(?:${OPERATOR}))`,
);
const SPACED = /^(?:dur|self|start|step)$/;
const JOINT = /^(?:OR|AND|\|)(?=[\s)]|$)/;
const POSITION = / at character (\d+), /;

/** The end of a value: brackets and quotes keep the spaces within them. */
function endOfValue(text: string, from: number): number {
  const quote = text[from];
  if (quote === '"' || quote === "'") {
    for (let i = from + 1; i < text.length; i++) {
      if (text[i] === '\\') i++;
      else if (text[i] === quote) return i + 1;
    }
    return text.length;
  }
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    const letter = text[i] as string;
    if ('[({'.includes(letter)) depth++;
    else if (depth > 0 && '])}'.includes(letter)) depth--;
    else if (letter === ')' || (/\s/.test(letter) && depth === 0)) return i;
  }
  return depth > 0 ? from + (/^\S*/.exec(text.slice(from))?.[0].length ?? 0) : text.length;
}

/** Kind and length of the part that begins at a place; `isStart`: a term may begin there. */
function partAt(text: string, at: number, isStart: boolean): [TokenKind, number][] {
  const rest = text.slice(at);
  const space = /^\s+/.exec(rest);
  if (space) return [['space', space[0].length]];
  const joint = isStart ? JOINT.exec(rest) : null;
  if (joint) return [['joint', joint[0].length]];
  if (rest.startsWith(')')) return [['joint', 1]];
  if (isStart && /^-?\(/.test(rest)) return [['joint', rest.indexOf('(') + 1]];
  const condition = isStart ? CONDITION.exec(rest) : null;
  const [, minus = '', field = '', operator = ''] = condition ?? [];
  if (condition && (SPACED.test(field) || !/\s/.test(operator))) {
    const parts: [TokenKind, number][] = minus ? [['operator', 1]] : [];
    return [...parts, ['field', field.length], ['operator', operator.length]];
  }
  if (isStart && /^-\S/.test(rest)) return [['operator', 1]];
  return [['text', Math.max(endOfValue(text, at) - at, 1)]];
}

/** Whether brackets are a group: an OR is in them, as the parser demands. */
function hasGroups(text: string): boolean {
  return /\(.*(?:^|[\s(])(?:OR|\|)(?=\s).*\)/s.test(text);
}

/** The index of the character that an error is about; null: none, or the end of the query. */
export function positionOf(message: string): number | null {
  const found = POSITION.exec(message);
  return found ? Number(found[1]) - 1 : null;
}

/** The parts of a query, in order; `wrongAt`: where the server's parser stopped. */
export function tokensOf(text: string, wrongAt: number | null): Token[] {
  const isGrouped = hasGroups(text);
  const tokens: Token[] = [];
  let at = 0;
  let isStart = true;
  while (at < text.length) {
    for (const [kind, length] of partAt(text, at, isStart)) {
      const part = text.slice(at, at + length);
      const isBracket = kind === 'joint' && /[()]/.test(part);
      const isWrong = wrongAt !== null && kind !== 'space' && at <= wrongAt && wrongAt < at + length;
      tokens.push({ text: part, kind: isBracket && !isGrouped ? 'text' : kind, isWrong });
      at += length;
      isStart = kind === 'space' || kind === 'joint' || (kind === 'operator' && part === '-');
    }
  }
  return tokens;
}
