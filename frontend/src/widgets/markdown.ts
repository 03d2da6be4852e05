/**
 * The documents of this project as blocks: headings, paragraphs, lists, tables and code, with code, bold text
 * and links inside. Anything else stays text: nothing becomes HTML.
 */

export type Inline =
  | { kind: 'text' | 'code' | 'strong' | 'emphasis'; text: string }
  | { kind: 'link'; text: string; to: string };

export type Block =
  | { kind: 'heading'; level: number; text: Inline[]; id: string }
  | { kind: 'paragraph'; text: Inline[] }
  | { kind: 'list'; isOrdered: boolean; items: Inline[][] }
  | { kind: 'code'; text: string }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] };

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^()\s]+)\)/g;
const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^\s*(?:[-*]|(\d+)\.)\s+(.*)$/;
const FENCE = /^```/;
const RULE_ROW = /^\|?[\s:|-]+\|[\s:|-]*$/;

export function inlineOf(text: string): Inline[] {
  const parts: Inline[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > end) parts.push({ kind: 'text', text: text.slice(end, match.index) });
    const [whole, code, strong, emphasis, label, to] = match;
    if (code !== undefined) parts.push({ kind: 'code', text: code });
    else if (strong !== undefined) parts.push({ kind: 'strong', text: strong });
    else if (emphasis !== undefined) parts.push({ kind: 'emphasis', text: emphasis });
    else parts.push({ kind: 'link', text: (label ?? '').replaceAll('`', ''), to: to ?? '' });
    end = match.index + whole.length;
  }
  if (end < text.length) parts.push({ kind: 'text', text: text.slice(end) });
  return parts;
}

/** The id of a heading, as links within the documents name it: "The verdict" is `the-verdict`. */
export function headingId(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

/** The cells of a table's row; a pipe in code does not separate. */
function cellsOf(line: string): Inline[][] {
  const cells: string[] = [];
  let cell = '';
  let isCode = false;
  for (const letter of line.trim().replace(/^\|/, '').replace(/\|$/, '')) {
    if (letter === '`') isCode = !isCode;
    if (letter === '|' && !isCode) {
      cells.push(cell);
      cell = '';
    } else cell += letter;
  }
  return [...cells, cell].map((text) => inlineOf(text.trim()));
}

/** Reads blocks line by line; `at` is the next line. */
class Lines {
  private at = 0;
  constructor(private readonly lines: readonly string[]) {}

  get isAtEnd(): boolean {
    return this.at >= this.lines.length;
  }

  peek(ahead = 0): string {
    return this.lines[this.at + ahead] ?? '';
  }

  next(): string {
    return this.lines[this.at++] ?? '';
  }

  /** The lines up to one that `ends` or to the end. */
  until(ends: (line: string) => boolean): string[] {
    const taken: string[] = [];
    while (!this.isAtEnd && !ends(this.peek())) taken.push(this.next());
    return taken;
  }
}

function startsBlock(line: string): boolean {
  return !line.trim() || HEADING.test(line) || ITEM.test(line) || FENCE.test(line) || line.startsWith('|');
}

function listOf(lines: Lines): Block {
  const isOrdered = ITEM.exec(lines.peek())?.[1] !== undefined;
  const items: string[] = [];
  for (let item = ITEM.exec(lines.peek()); item; item = ITEM.exec(lines.peek())) {
    lines.next();
    items.push([item[2] ?? '', ...lines.until(startsBlock).map((line) => line.trim())].join(' '));
  }
  return { kind: 'list', isOrdered, items: items.map(inlineOf) };
}

function tableOf(lines: Lines): Block {
  const head = cellsOf(lines.next());
  lines.next();
  return { kind: 'table', head, rows: lines.until((line) => !line.startsWith('|')).map(cellsOf) };
}

function blockOf(lines: Lines): Block {
  const line = lines.peek();
  const heading = HEADING.exec(line);
  if (heading) {
    lines.next();
    const text = heading[2] ?? '';
    return { kind: 'heading', level: heading[1]?.length ?? 1, text: inlineOf(text), id: headingId(text) };
  }
  if (FENCE.test(line)) {
    lines.next();
    const code = lines.until((one) => FENCE.test(one)).join('\n');
    lines.next();
    return { kind: 'code', text: code };
  }
  if (line.startsWith('|') && RULE_ROW.test(lines.peek(1))) return tableOf(lines);
  if (ITEM.test(line)) return listOf(lines);
  const text = [lines.next(), ...lines.until(startsBlock)].map((one) => one.trim()).join(' ');
  return { kind: 'paragraph', text: inlineOf(text) };
}

export function blocksOf(markdown: string): Block[] {
  const lines = new Lines(markdown.replace(/<!--[\s\S]*?-->/g, '').split(/\r?\n/));
  const blocks: Block[] = [];
  while (!lines.isAtEnd) {
    if (lines.peek().trim()) blocks.push(blockOf(lines));
    else lines.next();
  }
  return blocks;
}

/** The paragraphs before the first heading below the title, without a label such as "**Question.**". */
export function introductionOf(markdown: string): string {
  const body = markdown.replace(/^#\s.*$/m, '').split(/^##\s/m)[0] ?? '';
  return body
    .replace(/\*\*[A-Z]\w*\.\*\*\s*/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}
