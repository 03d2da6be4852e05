"""Kernels of CUDA graphs → the operator that put each into its graph, where the file shows both.

    capture  ├ aten::mm ──────┤ ├ aten::relu ──┤        launches with "graph id" 4, "graph node id" 11 and 12
               ▪ node 11          ▪ node 12
    replay     ▪ cudaGraphLaunch                        kernels with the same ids
    stream        ▒▒▒ node 11 ▒ node 12                 aten::mm, aten::relu

Nodes are numbered within a graph. A node that no launch in the file created stays with the launch of the
whole graph.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.distinct_rows import distinct_rows

Int64s = npt.NDArray[np.int64]


def creators(kernels: tuple[Int64s, Int64s], launches: tuple[Int64s, Int64s], operator: Int64s) -> Int64s:
    """The operator (a slice) that created the node of each kernel of a graph, -1 for none.

    `kernels`, `launches`: their graphs and nodes, 0 or less for none; `operator`: the operator around each
    launch, -1 for none. Of several launches of one node the last counts: graphs can be captured again.
    """
    usable = np.flatnonzero((launches[0] > 0) & (operator >= 0))
    result = np.full(len(kernels[0]), -1, np.int64)
    if not len(usable):
        return result
    _, code = distinct_rows(*(np.append(a, b[usable]) for a, b in zip(kernels, launches, strict=True)))
    n_kernels = len(result)
    of_node = np.full(int(code.max()) + 1, -1, np.int64)
    of_node[code[n_kernels:]] = operator[usable]
    has_node = (kernels[0] > 0) & (kernels[1] > 0)
    return np.where(has_node, of_node[code[:n_kernels]], -1)
