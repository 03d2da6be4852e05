/** Definitions on the page: the sentence of a number, its formula, and the formula with the run's numbers. */
import { createContext } from 'preact';

export interface Definition {
  description?: string;
  formula?: string;
  /** The formula with the run's numbers. */
  working?: string;
}

/** The sentence of each table and chart by its title, for headings that have none of their own. */
export const HeadingSentences = createContext<ReadonlyMap<string, string>>(new Map());

/** `data-term` names what the pointer is on: the title of a column, or after this prefix that of a tile. */
export const TILE_TERM = 'tile:';

/** A sentence with its period; empty stays empty. */
export function sentence(text: string | undefined): string {
  return text && !/[.?!…]$/.test(text) ? `${text}.` : (text ?? '');
}

/** What an unknown value says on hover and focus. The server states the reason. */
export function whyUnknown(reason: string | undefined): string {
  return reason ? sentence(`Unknown: ${reason}`) : 'Unknown.';
}

export interface TipAttributes {
  'data-tip'?: string;
  'data-tip-formula'?: string;
  'data-tip-more'?: string;
}

/** The attributes that show a definition as a tooltip; `more` follows in a line of its own. */
export function tipOf({ description, formula, working }: Definition, more = ''): TipAttributes {
  const lines = working || formula;
  if (!description && !lines && !more) return {};
  return {
    'data-tip': sentence(description) || more,
    ...(lines ? { 'data-tip-formula': lines } : {}),
    ...(more && description ? { 'data-tip-more': more } : {}),
  };
}
