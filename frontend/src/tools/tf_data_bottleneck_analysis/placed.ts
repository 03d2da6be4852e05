/** Positions of the stages and links of a graph. Separate from the layout, which brings dagre with it. */

/** The size of a stage's box. */
export const NODE = { width: 224, height: 54 } as const;

export interface Point {
  x: number;
  y: number;
}

export interface Placed {
  width: number;
  height: number;
  /** The center of each stage, by its id. */
  at: ReadonlyMap<number, Point>;
  /** An SVG path per link, in the order of the graph's links. */
  paths: string[];
}
