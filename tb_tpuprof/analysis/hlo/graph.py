"""An HLO module → the part of its graph around one instruction: who makes what it reads, who reads what it
makes, so many hops far.

Edges run from a producer to its consumer. A fusion is one node, or, opened, a frame with its body's
instructions; then an edge into the fusion ends at those that read the body's parameter, and an edge out of it
begins at the body's root:

    a ──▶ fusion ──▶ b        a ──▶ ┌ exp ──▶ add ┐ ──▶ b
                                    └─────────────┘

Nodes that very many instructions read (a constant) are shown, but the walk goes on through them only from the
middle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tb_tpuprof.trace.hlo import HloModule

HUB = 24  # neighbours beyond which the walk does not go on
MOST_NODES = 400
_MOST_EDGES = 4000


@dataclass(frozen=True)
class GraphOptions:
    """How far to go from the middle, how many nodes at most, and which fusions to open: all, or those in
    `opened`.
    """

    radius: int = 2
    most_nodes: int = 150
    opens_all: bool = False
    opened: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Node:
    """An instruction by its row. `frame` is the opened fusion that it is a part of, -1 if none; `is_frame`:
    an opened fusion itself.

    `n_hidden_operands`, `n_hidden_users`: neighbours that are not shown.
    """

    row: int
    depth: int
    frame: int = -1
    is_frame: bool = False
    n_hidden_operands: int = 0
    n_hidden_users: int = 0


@dataclass(frozen=True)
class Edge:
    """A value on its way; `operand` is its place among the consumer's operands."""

    source: int
    target: int
    operand: int


@dataclass(frozen=True)
class HloGraph:
    """`n_cut`: nodes within the radius that the limit leaves out."""

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
        """Breadth first; of one depth the heaviest first, so that a limit keeps what matters."""
        self.depth[center] = 0
        border = [center]
        for depth in range(1, self.options.radius + 1):
            found: dict[int, None] = {}
            for row in border:
                if row == center or self._n_neighbours(row) <= HUB:
                    found.update((other, None) for other in self._neighbours(row) if other not in self.depth)
            room = max(0, self.options.most_nodes - len(self.depth))
            chosen = list(found)
            if len(chosen) > room:
                chosen = sorted(chosen, key=self.weight, reverse=True)[:room]
                self.n_cut += len(found) - room
            self.depth.update((row, depth) for row in chosen)
            border = chosen

    def _n_neighbours(self, row: int) -> int:
        return int(self.module.operands.counts[row] + self.module.users.counts[row])

    def _neighbours(self, row: int) -> Iterator[int]:
        yield from (other for other in self.module.operands[row].tolist() if other >= 0)
        yield from self.module.users[row].tolist()


def neighbourhood(
    module: HloModule, center: int, options: GraphOptions, weight: Callable[[int], float] = lambda _row: 0.0
) -> HloGraph:
    """The graph around an instruction; `weight` says which to keep where there are too many."""
    walk = _Walk(module, options, weight)
    walk.run(center)
    frames = _opened(module, walk, options)
    inner = {row: fusion for fusion, rows in frames.items() for row in rows}
    shown = (set(walk.depth) - set(frames)) | set(inner)
    edges, elided = _edges(module, walk.depth, frames, shown)
    nodes = [
        _node(module, row, depth, walk.depth, is_frame=row in frames) for row, depth in walk.depth.items()
    ]
    nodes += [Node(row, walk.depth[fusion], fusion) for row, fusion in inner.items() if row not in elided]
    return HloGraph(center, tuple(nodes), tuple(edges[:_MOST_EDGES]), walk.n_cut)


def _opened(module: HloModule, walk: _Walk, options: GraphOptions) -> dict[int, range]:
    """Of each fusion to open the rows of its body, as long as there is room."""
    frames: dict[int, range] = {}
    room = MOST_NODES - len(walk.depth)
    for row in sorted(walk.depth, key=lambda row: walk.depth[row]):
        if not (options.opens_all or row in options.opened) or module.opcode(row) != "fusion":
            continue
        bodies = [computation for computation in module.calls[row].tolist() if computation >= 0]
        if not bodies:
            continue
        rows = module.rows_of(bodies[0])
        if len(rows) > room or row in rows:
            walk.n_cut += len(rows)
            continue
        if len(rows):
            frames[row] = rows
            room -= len(rows)
    return frames


def _edges(
    module: HloModule, depth: dict[int, int], frames: dict[int, range], shown: set[int]
) -> tuple[list[Edge], set[int]]:
    """Edges between what is shown, and parameters of bodies that are left out because their producer is
    there.
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
                users = module.users[parameter].tolist()
                edges += [
                    Edge(origin, user, module.operands[user].tolist().index(parameter))
                    for user in users
                    if user in shown
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
