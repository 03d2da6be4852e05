/**
 * The op profile's nodes as a tree: open, matching and sorted nodes become rows; the same tree becomes the
 * boxes of a flame. Pure.
 */
import { readIfAny, readTable } from '../../api/declared';
import { OP_PROFILE } from '../../api/tables/op_profile';
import type { Payload } from '../../api/types';
import { paletteToken } from '../../base/color';

export const { tables: TABLES, scalars: SCALARS } = OP_PROFILE.page;
const OP_TABLES = OP_PROFILE.op.tables;

export interface OpNode {
  row: number;
  name: string;
  kind: string;
  parent: number;
  depth: number;
  children: OpNode[];
  /** Before the server dropped those beyond its limit. */
  nChildren: number;
  timePs: number;
  share: number;
  wastedPs: number | null;
  occurrences: number;
  avgPs: number | null;
  flops: number | null;
  flopRate: number | null;
  flopsUsed: number | null;
  hbmRate: number | null;
  hbmUsed: number | null;
  onChipRead: number | null;
  onChipWrite: number | null;
  program: string;
  provenance: string;
  isFusion: boolean;
  /** Its time is an estimate: it is an instruction inside a fusion. */
  isEstimate: boolean;
}

/** All nodes by row; the first is the root. */
export function nodesOf(payload: Payload): OpNode[] {
  const rows = readTable(payload, TABLES.nodes);
  const [name, kind, program, provenance] = [
    rows.text('name'),
    rows.text('kind'),
    rows.text('program'),
    rows.text('provenance'),
  ];
  const [parentAt, nChildren, timePs, share, occurrences, avgPs] = [
    rows.number('parent'),
    rows.number('n_children'),
    rows.number('self_time_ps'),
    rows.number('time_fraction'),
    rows.number('n_occurrences'),
    rows.number('avg_time_ps'),
  ];
  const [flops, flopRate, flopsUsed, hbmRate, hbmUsed] = [
    rows.number('flops'),
    rows.number('flop_rate_flops_per_s'),
    rows.number('flops_fraction'),
    rows.number('hbm_bytes_per_s'),
    rows.number('hbm_fraction'),
  ];
  const [wastedPs, onChipRead, onChipWrite, isFusion] = [
    rows.number('wasted_ps'),
    rows.number('on_chip_read_fraction'),
    rows.number('on_chip_write_fraction'),
    rows.flag('is_fusion'),
  ];
  const nodes: OpNode[] = [];
  for (let row = 0; row < rows.length; row++) {
    const parent = nodes[parentAt(row) ?? -1];
    const node: OpNode = {
      row,
      name: name(row),
      kind: kind(row),
      parent: parent?.row ?? -1,
      depth: parent ? parent.depth + 1 : 0,
      children: [],
      nChildren: nChildren(row) ?? 0,
      timePs: timePs(row) ?? 0,
      share: share(row) ?? 0,
      wastedPs: wastedPs(row),
      occurrences: occurrences(row) ?? 0,
      avgPs: avgPs(row),
      flops: flops(row),
      flopRate: flopRate(row),
      flopsUsed: flopsUsed(row),
      hbmRate: hbmRate(row),
      hbmUsed: hbmUsed(row),
      onChipRead: onChipRead(row),
      onChipWrite: onChipWrite(row),
      program: program(row),
      provenance: provenance(row),
      isFusion: isFusion(row),
      isEstimate: false,
    };
    parent?.children.push(node);
    nodes.push(node);
  }
  return nodes;
}

/** The instructions of a fusion, from the details of the operation. */
export interface Inside {
  name: string;
  flops: number | null;
  /** Share of the fusion's FLOPs, by the cost model; null if it has none. */
  share: number | null;
  provenance: string;
}

export function insideOf(details: Payload): Inside[] {
  const rows = readIfAny(details, OP_TABLES.contents)?.all() ?? [];
  return rows.map(({ name, flops, estimated_fraction: share, provenance }) => ({
    name,
    flops,
    share,
    provenance,
  }));
}

/**
 * The nodes with the contents of some fusions as their children; their times are the fusion's time by
 * estimated share.
 */
export function withInside(
  nodes: readonly OpNode[],
  inside: ReadonlyMap<number, readonly Inside[]>,
): OpNode[] {
  if (!inside.size) return [...nodes];
  const all = nodes.map((node) => ({ ...node, children: [] as OpNode[] }));
  for (const node of all) all[node.parent]?.children.push(node);
  for (const [row, contents] of inside) {
    const fusion = all[row];
    if (!fusion) continue;
    for (const { name, flops, share, provenance } of [...contents].sort(
      (a, b) => (b.flops ?? 0) - (a.flops ?? 0),
    )) {
      const unknown = {
        flopRate: null,
        flopsUsed: null,
        hbmRate: null,
        hbmUsed: null,
        onChipRead: null,
        onChipWrite: null,
        avgPs: null,
        wastedPs: null,
      };
      const node: OpNode = {
        ...unknown,
        ...{
          row: all.length,
          name,
          kind: 'inside',
          parent: row,
          depth: fusion.depth + 1,
          children: [],
          nChildren: 0,
          timePs: fusion.timePs * (share ?? 0),
          share: fusion.share * (share ?? 0),
        },
        ...{
          occurrences: fusion.occurrences,
          flops,
          program: fusion.program,
          provenance,
          isFusion: false,
          isEstimate: true,
        },
      };
      fusion.children.push(node);
      all.push(node);
    }
    fusion.nChildren = fusion.children.length;
  }
  return all;
}

/**
 * Fusions whose contents are to be shown: the open ones, the chosen one, and the zoomed one; at most as many
 * as one request takes.
 */
export function fusionsToOpen(nodes: readonly OpNode[], rows: Iterable<number>): OpNode[] {
  return [...new Set(rows)]
    .flatMap((row) => (nodes[row]?.isFusion ? [nodes[row]] : []))
    .slice(0, MOST_FUSIONS);
}

const MOST_FUSIONS = 24;

export interface Box {
  node: OpNode;
  /** Shares of the width. */
  left: number;
  width: number;
  level: number;
}

const LEAST_WIDTH = 0.0015;

/**
 * The boxes of a flame below a node: one level below the other, as wide as their time; boxes too narrow to
 * see are left out.
 */
export function boxesOf(nodes: readonly OpNode[], zoomed: number): Box[] {
  const top = nodes[zoomed] ?? nodes[0];
  if (!top) return [];
  const boxes: Box[] = [];
  const place = (node: OpNode, left: number, width: number, level: number): void => {
    if (width < LEAST_WIDTH) return;
    boxes.push({ node, left, width, level });
    let x = left;
    for (const child of node.children) {
      const share = node.timePs > 0 ? (child.timePs / node.timePs) * width : 0;
      place(child, x, share, level + 1);
      x += share;
    }
  };
  place(top, 0, 1, 0);
  return boxes;
}

export interface Tile {
  node: OpNode;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Levels below the zoomed node. */
  level: number;
  /** Whether tiles of its children cover it: then only its title is visible. */
  isFrame: boolean;
}

const TITLE_PX = 17;
const GAP_PX = 2;
const LEAST_FRAME = { width: 48, height: 40 };
const LEAST_TILE_PX = 3;

interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

/**
 * Areas in proportion to weights (the largest first), as nearly square as rows permit: Bruls, Huizing, van
 * Wijk, Squarified treemaps, 2000.
 */
export function squarified(weights: readonly number[], { x, y, width, height }: Area): Area[] {
  const areas: Area[] = [];
  let left = weights.reduce((sum, weight) => sum + weight, 0);
  let first = 0;
  let room = { x, y, width, height };
  while (first < weights.length && left > 0 && room.width > 0 && room.height > 0) {
    const side = Math.min(room.width, room.height);
    const scale = (room.width * room.height) / left;
    const worst = (sum: number, largest: number, smallest: number): number =>
      Math.max(
        (side * side * largest * scale) / (sum * scale) ** 2,
        (sum * scale) ** 2 / (side * side * smallest * scale),
      );
    let end = first + 1;
    let sum = weights[first] ?? 0;
    while (end < weights.length) {
      const next = weights[end] ?? 0;
      if (
        next <= 0 ||
        worst(sum + next, weights[first] ?? 0, next) > worst(sum, weights[first] ?? 0, weights[end - 1] ?? 0)
      )
        break;
      sum += next;
      end++;
    }
    const thick = (sum * scale) / side;
    let along = 0;
    for (; first < end; first++) {
      const length = ((weights[first] ?? 0) / sum) * side;
      areas.push(
        room.width >= room.height
          ? { x: room.x, y: room.y + along, width: thick, height: length }
          : { x: room.x + along, y: room.y, width: length, height: thick },
      );
      along += length;
    }
    room =
      room.width >= room.height
        ? { ...room, x: room.x + thick, width: room.width - thick }
        : { ...room, y: room.y + thick, height: room.height - thick };
    left -= sum;
  }
  return areas;
}

/**
 * The tiles of a treemap below a node: each as large as its time, children on their parent; tiles too small
 * to see are left out.
 */
export function tilesOf(nodes: readonly OpNode[], zoomed: number, width: number, height: number): Tile[] {
  const top = nodes[zoomed] ?? nodes[0];
  if (!top) return [];
  const tiles: Tile[] = [];
  const place = (node: OpNode, area: Area, level: number): void => {
    const children = [...node.children]
      .filter(({ timePs }) => timePs > 0)
      .sort((a, b) => b.timePs - a.timePs);
    const isFrame =
      children.length > 0 && area.width >= LEAST_FRAME.width && area.height >= LEAST_FRAME.height;
    tiles.push({ node, ...area, level, isFrame });
    if (!isFrame) return;
    const inner = {
      x: area.x + GAP_PX,
      y: area.y + TITLE_PX,
      width: area.width - 2 * GAP_PX,
      height: area.height - TITLE_PX - GAP_PX,
    };
    // Time that the server left out, or that no estimate covers, stays empty.
    const rest = Math.max(0, node.timePs - children.reduce((sum, { timePs }) => sum + timePs, 0));
    const parts: { child: OpNode | null; weight: number }[] = [
      ...children.map((child) => ({ child, weight: child.timePs })),
      ...(rest > 0 ? [{ child: null, weight: rest }] : []),
    ];
    parts.sort((one, other) => other.weight - one.weight);
    squarified(
      parts.map(({ weight }) => weight),
      inner,
    ).forEach((area, i) => {
      const child = parts[i]?.child;
      if (child && area.width >= LEAST_TILE_PX && area.height >= LEAST_TILE_PX) place(child, area, level + 1);
    });
  };
  place(top, { x: 0, y: 0, width, height }, 0);
  return tiles;
}

const BANDS = [
  { name: 'low', title: 'below 25%', token: '--bad', from: 0 },
  { name: 'middle', title: '25–60%', token: '--warn', from: 0.25 },
  { name: 'high', title: 'above 60%', token: '--good', from: 0.6 },
] as const;

/** The color of a utilization. */
export function bandToken(used: number | null): string {
  if (used === null) return '--c-idle';
  return [...BANDS].reverse().find((band) => used >= band.from)?.token ?? '--bad';
}

export interface Coloring {
  token: (node: OpNode) => string;
  /** The meaning of the colors. */
  legend: readonly { title: string; token: string }[];
}

const MOST_CATEGORIES = 8;

/** By device utilization; if no peak is known, by category, so that boxes can be distinguished. */
export function coloringOf(nodes: readonly OpNode[], by: 'flops' | 'hbm'): Coloring {
  const used = (node: OpNode): number | null => (by === 'flops' ? node.flopsUsed : node.hbmUsed);
  if (nodes.some((node) => node.flopsUsed !== null || node.hbmUsed !== null)) {
    return { token: (node) => (node.kind === 'idle' ? '--c-idle' : bandToken(used(node))), legend: BANDS };
  }
  const times = new Map<string, number>();
  for (const { kind, name, timePs } of nodes)
    if (kind === 'category') times.set(name, (times.get(name) ?? 0) + timePs);
  const names = [...times].sort(([, a], [, b]) => b - a).map(([name]) => name);
  const tokens = new Map(names.map((name, i) => [name, i < MOST_CATEGORIES ? paletteToken(i) : '--c-idle']));
  const token = (node: OpNode): string => {
    for (let ancestor: OpNode | undefined = node; ancestor; ancestor = nodes[ancestor.parent])
      if (ancestor.kind === 'category') return tokens.get(ancestor.name) ?? '--c-idle';
    return '--c-idle';
  };
  return {
    token,
    legend: names
      .slice(0, MOST_CATEGORIES)
      .map((name) => ({ title: name, token: tokens.get(name) ?? '--c-idle' })),
  };
}
