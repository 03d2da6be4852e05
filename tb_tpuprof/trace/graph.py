"""A TensorFlow graph as columns: each node of the graph and of its functions, with the facts that decide
where it can run.
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
    """A graph in a file: `name` is unique below the run's folder; `kind` describes it, including its step."""

    name: str
    path: str
    kind: str
    position: int
    size_bytes: int


@dataclass(frozen=True)
class GraphSearch:
    """Result of a search for graphs. `n_files` counts event files and SavedModels; `notes` report which of
    them could not be read, and why.
    """

    folder: str
    places: tuple[GraphPlace, ...]
    n_files: int
    notes: tuple[str, ...] = ()
    is_cut: bool = False  # the search stopped at a limit


@dataclass(frozen=True)
class Texts:
    """Distinct texts, and for each row the index of its text."""

    codes: Int32s
    strings: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """Columns with a row per node: first the nodes of the graph itself, then those of its functions one by
    one.

    `function` is the function's number, -1 for the graph itself. `types` has triples (node, code of an
    attribute in `attributes`, number of a type), `calls` pairs (node, number of the function that an
    attribute names), `edges` pairs (node that produces a value, node that reads it).
    `node_start` and `node_size`: where a node's message is in `data`.
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
    node_start: Int64s
    node_size: Int64s

    def __len__(self) -> int:
        return len(self.name_start)

    def name(self, node: int) -> str:
        """A node's full name including its scope."""
        start, size = int(self.name_start[node]), int(self.name_size[node])
        return self.data[start : start + max(size, 0)].tobytes().decode("utf-8", "replace")
