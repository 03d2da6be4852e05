/** A graph that has been laid out, and how large its nodes are. */
import { shapeOf, shortened, timeOf, type Edge, type Node } from './model';

export interface Point {
  x: number;
  y: number;
}

export interface Frame extends Point {
  node: Node;
  width: number;
  height: number;
}

export interface Link {
  edge: Edge;
  path: string;
  label: Point | null;
}

export interface Placed {
  width: number;
  height: number;
  /** Middle and size of each node. */
  at: Map<number, Point & { width: number; height: number }>;
  frames: Frame[];
  links: Link[];
}

const CHARACTER_PX = 7.5;
const SMALL_PX = 6.5;
/** Room for a time that is still to come: the graph stays in its place when it is there. */
const TIME_LENGTH = 18;
export const MOST_NAME = 32;

export function widthOf(node: Node): number {
  const longest = Math.max(shortened(node.name, MOST_NAME).length * CHARACTER_PX, shapeOf(node).length * SMALL_PX, (node.awaitsTime ? TIME_LENGTH : timeOf(node).length) * SMALL_PX);
  return Math.round(Math.max(90, longest + 24));
}

export function heightOf(node: Node): number {
  return node.awaitsTime || timeOf(node) ? 60 : 44;
}
