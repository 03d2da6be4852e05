"""An HLO module → the part of its graph around one instruction: producers of its operands and users of its
result, up to a number of hops.

Edges run from a producer to its consumer. A fusion is one node, or, opened, a frame with the instructions of
its body. Then an edge into the fusion ends at the users of the body's parameter, and an edge out of it begins
at the body's root:

    a ──▶ fusion ──▶ b        a ──▶ ┌ exp ──▶ add ┐ ──▶ b
                                    └─────────────┘

Nodes with very many users (a constant) are shown, but the walk continues through them only from the center.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tb_tpuprof.trace.hlo import HloModule

HUB = 24  # the walk does not continue through nodes with more neighbors
MOST_NODES = 400
_MOST_EDGES = 4000


@dataclass(frozen=True)
class GraphOptions:
    """Maximum distance from the center, maximum number of nodes, and which fusions to open: all, or those in
    `opened`.
    """

    radius: int = 2
    most_nodes: int = 150
    opens_all: bool = False
    opened: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Node:
    """An instruction by its row. `frame`: the opened fusion that it is inside, -1 if none; `is_frame`: it is
    an opened fusion itself.

    `n_hidden_operands`, `n_hidden_users`: neighbors that are not shown.
    """

    row: int
    depth: int
    frame: int = -1
    is_frame: bool = False
    n_hidden_operands: int = 0
    n_hidden_users: int = 0


@dataclass(frozen=True)
class Edge:
    """A value from its producer to a consumer; `operand` is its index among the consumer's operands."""

    source: int
    target: int
    operand: int


@dataclass(frozen=True)
class HloGraph:
    """`n_cut`: nodes within the radius that the limit on nodes leaves out."""

    center: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    n_cut: int


@dataclass
class _Walk:
    module: HloModule
    options: GraphOptions
    weight: Callable[[int], float]
    depth: dict[int, int] = field(default_factory=dict)
    n_cut: int = 0

    def run(self, center: int) -> None:
        """Breadth first; within a depth the heaviest nodes first, so that a limit keeps the most
        important.
        """
        self.depth[center] = 0
        border = [center]
        for depth in range(1, self.options.radius + 1):
            reached: dict[int, None] = {}
            for row in border:
                if row == center or self._n_neighbors(row) <= HUB:
                    reached.update(
                        (neighbor, None) for neighbor in self._neighbors(row) if neighbor not in self.depth
                    )
            capacity = max(0, self.options.most_nodes - len(self.depth))
            selected = list(reached)
            if len(selected) > capacity:
                selected = sorted(selected, key=self.weight, reverse=True)[:capacity]
                self.n_cut += len(reached) - capacity
            self.depth.update((row, depth) for row in selected)
            border = selected

    def _n_neighbors(self, row: int) -> int:
        return int(self.module.operands.counts[row] + self.module.users.counts[row])

    def _neighbors(self, row: int) -> Iterator[int]:
        yield from (other for other in self.module.operands[row].tolist() if other >= 0)
        yield from self.module.users[row].tolist()


def neighborhood(
    module: HloModule, center: int, options: GraphOptions, weight: Callable[[int], float] = lambda _row: 0.0
) -> HloGraph:
    """The graph around an instruction. If there are too many nodes, those with the largest
    `weight` are kept.
    """
    walk = _Walk(module, options, weight)
    walk.run(center)
    frames = _opened(module, walk, options)
    frame_of = {row: fusion for fusion, rows in frames.items() for row in rows}
    shown = (set(walk.depth) - set(frames)) | set(frame_of)
    edges, elided = _edges(module, walk.depth, frames, shown)
    nodes = [
        _node(module, row, depth, walk.depth, is_frame=row in frames) for row, depth in walk.depth.items()
    ]
    nodes += [Node(row, walk.depth[fusion], fusion) for row, fusion in frame_of.items() if row not in elided]
    return HloGraph(center, tuple(nodes), tuple(edges[:_MOST_EDGES]), walk.n_cut)


def _opened(module: HloModule, walk: _Walk, options: GraphOptions) -> dict[int, range]:
    """The fusions to open: row → rows of its body, as long as there is room."""
    frames: dict[int, range] = {}
    capacity = MOST_NODES - len(walk.depth)
    for row in sorted(walk.depth, key=lambda row: walk.depth[row]):
        if not (options.opens_all or row in options.opened) or module.opcode(row) != "fusion":
            continue
        bodies = [computation for computation in module.calls[row].tolist() if computation >= 0]
        if not bodies:
            continue
        rows = module.rows_of(bodies[0])
        if len(rows) > capacity or row in rows:
            walk.n_cut += len(rows)
            continue
        if len(rows):
            frames[row] = rows
            capacity -= len(rows)
    return frames


def _edges(
    module: HloModule, depth: dict[int, int], frames: dict[int, range], shown: set[int]
) -> tuple[list[Edge], set[int]]:
    """Edges between shown nodes, and the parameters of opened bodies that are left out because their producer
    is shown.
    """
    edges: list[Edge] = []
    elided: set[int] = set()
    for target in depth:
        for operand, source in enumerate(module.operands[target].tolist()):
            if source not in depth:
                continue
            origin = _root(module, frames[source]) if source in frames else source
            if target not in frames:
                edges.append(Edge(origin, target, operand))
                continue
            for parameter in _parameters(module, frames[target], operand):
                elided.add(parameter)
                edges += [
                    Edge(origin, user, place)
                    for user in dict.fromkeys(module.users[parameter].tolist())
                    if user in shown
                    for place, read in enumerate(module.operands[user].tolist())
                    if read == parameter
                ]
    for rows in frames.values():
        for target in rows:
            operands = module.operands[target].tolist()
            edges += [
                Edge(source, target, i)
                for i, source in enumerate(operands)
                if source in shown and source not in elided
            ]
    return edges, elided


def _root(module: HloModule, rows: range) -> int:
    root = int(module.computations["root"][int(module.instructions["computation"][rows[0]])])
    return root if root in rows else rows[-1]


def _parameters(module: HloModule, rows: range, number: int) -> list[int]:
    numbers = module.instructions["parameter_number"]
    root = _root(module, rows)
    return [
        row
        for row in rows
        if module.opcode(row) == "parameter" and int(numbers[row]) == number and row != root
    ]


def _node(module: HloModule, row: int, depth: int, shown: dict[int, int], is_frame: bool) -> Node:
    operands = {other for other in module.operands[row].tolist() if other >= 0}
    users = module.users[row]
    n_users_shown = sum(1 for other in set(users[:_MOST_EDGES].tolist()) if other in shown)
    n_users = len(set(users.tolist())) if len(users) <= _MOST_EDGES else len(users)
    return Node(row, depth, -1, is_frame, len(operands - shown.keys()), n_users - n_users_shown)
