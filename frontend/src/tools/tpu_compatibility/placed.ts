/** A drawing with its layout, and the size of its boxes. */
import { noteOf, shortName, type Edge, type Item } from './drawn';

export interface Point {
  x: number;
  y: number;
}

/** Center and size. */
export interface Box extends Point {
  width: number;
  height: number;
}

export interface Link {
  edge: Edge;
  path: string;
}

export interface Placed {
  width: number;
  height: number;
  at: Map<number, Box>;
  links: Link[];
}

export const MOST_NAME = 28;
const CHARACTER_PX = 7.2;
const SMALL_PX = 6.2;

export function sizeOf(item: Item): { width: number; height: number } {
  const longest = Math.max(shortName(item, MOST_NAME).length * CHARACTER_PX, noteOf(item).length * SMALL_PX);
  return {
    width: Math.round(
      Math.max(item.kind === 'scope' ? 110 : 70, longest + (item.kind === 'scope' ? 40 : 20)),
    ),
    height: item.kind === 'scope' ? 46 : 38,
  };
}
