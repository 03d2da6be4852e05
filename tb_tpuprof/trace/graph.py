"""A TensorFlow graph as columns: every node of the graph and of its functions, with what decides where it can
run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class GraphPlace:
    """A graph that a file holds: `name` is unique below the run's folder, `kind` says in words what it is and
    of which step.
    """

    name: str
    path: str
    kind: str
    position: int
    size_bytes: int


@dataclass(frozen=True)
class GraphSearch:
    """What looking for graphs found. `n_files` are event files and SavedModels; `notes` say what could not be
    read, and why.
    """

    folder: str
    places: tuple[GraphPlace, ...]
    n_files: int
    notes: tuple[str, ...] = ()
    is_cut: bool = False  # there is more than was looked through


@dataclass(frozen=True)
class Texts:
    """Distinct texts and for each row the number of its text."""

    codes: Int32s
    strings: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """Columns have a row per node: first those of the graph itself, then of its functions one by one.

    `function` is the number of the function, -1 in the graph itself. `types` are triples (node, code of an
    attribute in `attributes`, number of a type), `calls` pairs (node, number of the function that an
    attribute names), `edges` pairs (node that makes a value, node that reads it).
    """

    data: npt.NDArray[np.uint8]
    name_start: Int64s
    name_size: Int64s
    op: Texts
    device: Texts
    scope: Texts
    function: Int32s
    functions: tuple[str, ...]
    types: Int64s
    attributes: tuple[str, ...]
    calls: Int64s
    edges: Int64s
    is_outside_compilation: Bools
    is_tpu: Bools
    n_damaged: int

    def __len__(self) -> int:
        return len(self.name_start)

    def name(self, node: int) -> str:
        """The whole name of a node, its scope included."""
        start, size = int(self.name_start[node]), int(self.name_size[node])
        return self.data[start : start + max(size, 0)].tobytes().decode("utf-8", "replace")
