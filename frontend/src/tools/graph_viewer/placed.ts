/** A graph that has been laid out, and how large its nodes are. */
import { hiddenOperands, hiddenUsers, shapeOf, shortened, timeOf, type Edge, type Node } from './model';

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
  /** Center and size of each node. */
  at: Map<number, Point & { width: number; height: number }>;
  frames: Frame[];
  links: Link[];
}

const CHARACTER_PX = 7.5;
const SMALL_PX = 6.5;
/** Space for a time that is not known yet: the graph does not move when it arrives. */
const TIME_LENGTH = 18;
const MORE_GAP_PX = 8;
export const MOST_NAME = 32;

export function widthOf(node: Node): number {
  const [above, below] = [hiddenOperands(node), hiddenUsers(node)].map((text) =>
    text ? text.length * SMALL_PX + MORE_GAP_PX : 0,
  ) as [number, number];
  const [shape, time] = [
    shapeOf(node).length * SMALL_PX,
    (node.awaitsTime ? TIME_LENGTH : timeOf(node).length) * SMALL_PX,
  ];
  const longest = Math.max(
    shortened(node.name, MOST_NAME).length * CHARACTER_PX + above,
    shape + (time ? 0 : below),
    time + below,
  );
  return Math.round(Math.max(90, longest + 24));
}

export function heightOf(node: Node): number {
  return node.awaitsTime || timeOf(node) ? 60 : 44;
}
