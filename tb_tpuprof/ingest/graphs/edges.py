"""The inputs of a TensorFlow graph's nodes, as texts -> edges between nodes. No Python loop over nodes.

NodeDef input 3: `name`, `name:1` or, in a function, `name:output:0`; `^name` is a control input, which
transfers no value. Arguments of a function are not nodes.
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
    """(node that produces a value, node that reads it), both of the same function, in the file's order.

    `names` are starts and sizes of the nodes' names. An input refers to the first of several nodes with the
    same name; inputs that name no node are left out.
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
    has_name = names[1] > 0
    all_starts, all_sizes = (
        np.concatenate([np.where(has_name, names[0], 0), begin]),
        np.concatenate([np.where(has_name, names[1], 0), length]),
    )
    codes, _ = intern(
        data, np.ascontiguousarray(all_starts), np.ascontiguousarray(all_sizes), secrets.randbits(63)
    )
    n_functions = int(function.max(initial=-1)) + 2
    key = codes.astype(np.int64) * n_functions + np.concatenate([function, function[reader]]) + 1
    node_key, input_key = key[:n_nodes], key[n_nodes:]
    order = np.argsort(node_key, kind="stable")
    index = np.minimum(np.searchsorted(node_key[order], input_key), n_nodes - 1)
    producer = order[index]
    is_edge = (node_key[producer] == input_key) & (length > 0)
    return np.stack([producer[is_edge], reader[is_edge]], 1)
