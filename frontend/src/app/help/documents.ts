/** The documents that come with the page, each a chunk that is loaded when it is first opened. */

const FOLDER = '../../../../docs/';
const FILES = import.meta.glob<string>(
  ['../../../../docs/{tools,causes}/*.md', '../../../../docs/{capture,glossary,peaks,pytorch}.md'],
  { query: '?raw', import: 'default' },
);

export const GLOSSARY = 'glossary.md';

/** The document of a tool; undefined: it has none. */
export function documentOf(tool: string): string | undefined {
  const path = `tools/${tool}.md`;
  return hasDocument(path) ? path : undefined;
}

export function hasDocument(path: string): boolean {
  return Object.hasOwn(FILES, FOLDER + path);
}

/** The text of a document, by its path below docs/. */
export async function readDocument(path: string): Promise<string> {
  const load = hasDocument(path) ? FILES[FOLDER + path] : undefined;
  if (!load) throw new Error(`there is no document ${path}`);
  return load();
}

export interface Place {
  path: string;
  /** The id of a heading; empty: the top. */
  heading: string;
}

/** The place that a link in a document leads to; null: none that comes with the page. */
export function placeOf(from: string, link: string): Place | null {
  const [file = '', heading = ''] = link.split('#');
  if (!file) return { path: from, heading };
  const parts = from.split('/').slice(0, -1);
  for (const part of file.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  const path = parts.join('/');
  return hasDocument(path) ? { path, heading } : null;
}
