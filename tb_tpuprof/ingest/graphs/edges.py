"""The inputs of a TensorFlow graph's nodes, as texts -> which node reads from which. No Python per node.

NodeDef input 3: `name`, `name:1` or, in a function, `name:output:0`; `^name` only waits for it. Arguments of
a function are no nodes.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import intern, parts

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_CARET, _COLON = 94, 58


def input_edges(
    data: Bytes, starts: Ints, sizes: Ints, names: tuple[Ints, Ints], function: npt.NDArray[np.int32]
) -> Ints:
    """(node that makes a value, node that reads it), both of the same function, in the file's order.

    `names` are starts and sizes of the nodes' names. Of nodes with the same name the first is meant; inputs
    that name none are left out.
    """
    offsets, begin, length = parts(data, starts, sizes, 3)
    reader = np.repeat(np.arange(len(starts), dtype=np.int64), np.diff(offsets))
    inside = (length > 0) & (begin >= 0) & (begin <= len(data) - length)
    reader, begin, length = reader[inside], begin[inside], length[inside]
    if not len(begin):
        return np.empty((0, 2), np.int64)
    caret = data[begin] == _CARET
    begin, length = begin + caret, length - caret
    colons = np.append(np.flatnonzero(data == _COLON), len(data))
    length = np.minimum(length, colons[np.searchsorted(colons, begin)] - begin)
    n_nodes = len(starts)
    known = names[1] > 0
    all_starts, all_sizes = (
        np.concatenate([np.where(known, names[0], 0), begin]),
        np.concatenate([np.where(known, names[1], 0), length]),
    )
    codes, _ = intern(
        data, np.ascontiguousarray(all_starts), np.ascontiguousarray(all_sizes), secrets.randbits(63)
    )
    n_functions = int(function.max(initial=-1)) + 2
    key = codes.astype(np.int64) * n_functions + np.concatenate([function, function[reader]]) + 1
    of_node, wanted = key[:n_nodes], key[n_nodes:]
    order = np.argsort(of_node, kind="stable")
    at = np.minimum(np.searchsorted(of_node[order], wanted), n_nodes - 1)
    maker = order[at]
    good = (of_node[maker] == wanted) & (length > 0)
    return np.stack([maker[good], reader[good]], 1)
