"""The bytes of a TensorFlow GraphDef -> columns of its nodes and of its functions' nodes. No Python loop over
nodes.

Field numbers: GraphDef node 1, library 2. FunctionDefLibrary function 1. FunctionDef signature 1 (its name
1), node_def 3. NodeDef name 1, op 2, input 3, device 4, attr 5 (key 1, value 2). AttrValue list 1, type 6,
func 10 (name 1). ListValue type 6, func 9.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.graphs.edges import input_edges
from tb_tpuprof.native import intern, ints, parts, spans
from tb_tpuprof.trace.graph import Graph, Texts

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
OUTSIDE = ("_xla_outside_compilation", "_xla_has_host_transfer")
TPU = ("_tpu_replicate", "_replication_info")
_SLASH = 47


def read_graph(data: Bytes, start: int, size: int) -> Graph:
    """The graph in data[start:start + size]. Damaged nodes are left out and counted."""
    outer = (np.array([start], np.int64), np.array([size], np.int64))
    _, node_start, node_size = parts(data, *outer, 1)
    _, library_start, library_size = parts(data, *outer, 2)
    _, body_start, body_size = parts(data, library_start, library_size, 1)
    offsets, inner_start, inner_size = parts(data, body_start, body_size, 3)
    starts, sizes = np.concatenate([node_start, inner_start]), np.concatenate([node_size, inner_size])
    function_of_inner = (
        np.repeat(np.arange(len(body_start), dtype=np.int32), np.diff(offsets))
        if len(body_start)
        else np.empty(0, np.int32)
    )
    function = np.concatenate([np.full(len(node_start), -1, np.int32), function_of_inner])
    values, lengths, _, bad = spans(data, starts, sizes, np.array([1, 2, 4], np.int64))
    is_whole = bad == 0
    n_damaged = int((~is_whole).sum())
    starts, sizes, function, values, lengths = (
        starts[is_whole],
        sizes[is_whole],
        function[is_whole],
        values[is_whole],
        lengths[is_whole],
    )
    functions = _function_names(data, body_start, body_size)
    lengths = np.where(_is_text(values, lengths, len(data)), lengths, 0)
    name_start, name_size = np.ascontiguousarray(values[:, 0]), np.ascontiguousarray(lengths[:, 0])
    attributes = _Attributes(data, starts, sizes)
    return Graph(
        data,
        name_start,
        name_size,
        _texts(data, values[:, 1], lengths[:, 1]),
        _texts(data, values[:, 2], lengths[:, 2]),
        _texts(data, name_start, _scope_sizes(data, name_start, name_size)),
        function,
        functions,
        attributes.types(),
        attributes.keys.strings,
        attributes.calls(functions),
        input_edges(data, starts, sizes, (name_start, name_size), function),
        attributes.has(OUTSIDE[:1], len(starts)),
        attributes.has(TPU, len(starts)),
        n_damaged,
        starts,
        sizes,
    )


def _is_text(
    values: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], limit: int
) -> npt.NDArray[np.bool_]:
    """Which spans are inside the data: a hostile file may have a number in place of a text, and then the span
    has no size.
    """
    inside: npt.NDArray[np.bool_] = (sizes > 0) & (values >= 0) & (values <= limit - sizes)
    return inside


def _texts(data: Bytes, starts: Ints, sizes: Ints) -> Texts:
    inside = _is_text(starts, sizes, len(data))
    starts, sizes = np.where(inside, starts, 0), np.where(inside, sizes, 0)
    codes, first = intern(
        data, np.ascontiguousarray(starts), np.ascontiguousarray(sizes), secrets.randbits(63)
    )
    strings = tuple(
        _text(data, a, n) for a, n in zip(starts[first].tolist(), sizes[first].tolist(), strict=True)
    )
    return Texts(codes, strings)


def _text(data: Bytes, start: int, size: int) -> str:
    return data[start : start + size].tobytes().decode("utf-8", "replace")


def _scope_sizes(data: Bytes, starts: Ints, sizes: Ints) -> Ints:
    """Bytes of each name up to its last slash, 0 if it has none."""
    slashes = np.flatnonzero(data == _SLASH)
    if not len(slashes):
        return np.zeros(len(starts), np.int64)
    last = np.searchsorted(slashes, starts + sizes) - 1
    slash = slashes[np.maximum(last, 0)]
    return np.where((last >= 0) & (slash >= starts) & (sizes > 0), slash - starts, 0).astype(np.int64)


def _function_names(data: Bytes, starts: Ints, sizes: Ints) -> tuple[str, ...]:
    signatures, lengths, _, _ = spans(data, starts, sizes, np.array([1], np.int64))
    inside = _is_text(signatures, lengths, len(data))
    signature_start, signature_size = (
        np.where(inside, signatures, 0)[:, 0],
        np.where(inside, lengths, 0)[:, 0],
    )
    names, name_sizes, _, _ = spans(
        data,
        np.ascontiguousarray(signature_start),
        np.ascontiguousarray(signature_size),
        np.array([1], np.int64),
    )
    is_inside = _is_text(names, name_sizes, len(data))[:, 0]
    return tuple(
        _text(data, start, size) if is_text else ""
        for start, size, is_text in zip(names[:, 0], name_sizes[:, 0], is_inside, strict=True)
    )


class _Attributes:
    """All attributes of all nodes: their nodes, their keys and the spans of their values."""

    def __init__(self, data: Bytes, starts: Ints, sizes: Ints) -> None:
        self.data = data
        offsets, entry_start, entry_size = parts(data, starts, sizes, 5)
        self.node = (
            np.repeat(np.arange(len(starts), dtype=np.int64), np.diff(offsets))
            if len(starts)
            else np.empty(0, np.int64)
        )
        values, lengths, _, _ = spans(data, entry_start, entry_size, np.array([1, 2], np.int64))
        self.keys = _texts(data, values[:, 0], lengths[:, 0])
        inside = _is_text(values[:, 1], lengths[:, 1], len(data))
        self.start, self.size = np.where(inside, values[:, 1], 0), np.where(inside, lengths[:, 1], 0)

    def has(self, keys: tuple[str, ...], n_nodes: int) -> npt.NDArray[np.bool_]:
        """For each node, whether it has one of these attributes."""
        codes = [code for code, key in enumerate(self.keys.strings) if key in keys]
        result = np.zeros(n_nodes, np.bool_)
        result[self.node[np.isin(self.keys.codes, codes)]] = True
        return result

    def types(self) -> Ints:
        """(node, key, type) of each attribute that is a type, and of each type of an attribute that is a list
        of types.
        """
        values, lengths, counts, _ = spans(self.data, self.start, self.size, np.array([1, 6], np.int64), 1)
        single = np.flatnonzero((counts > 0) & (lengths[:, 1] <= 8))
        lists = np.flatnonzero(_is_text(values[:, 0], lengths[:, 0], len(self.data)))
        offsets, listed = ints(
            self.data, np.ascontiguousarray(values[lists, 0]), np.ascontiguousarray(lengths[lists, 0]), 6
        )
        owner = np.concatenate([single, np.repeat(lists, np.diff(offsets))]).astype(np.int64)
        number = np.concatenate([values[single, 1], listed])
        return np.stack([self.node[owner], self.keys.codes[owner].astype(np.int64), number], 1)

    def calls(self, functions: tuple[str, ...]) -> Ints:
        """(node, function) of each function that an attribute names, alone or in a list."""
        data, index = self.data, {name: i for i, name in enumerate(functions)}
        owners = np.arange(len(self.node), dtype=np.int64)
        direct_offsets, direct, direct_size = parts(data, self.start, self.size, 10)
        list_offsets, lists, list_size = parts(data, self.start, self.size, 1)
        inner_offsets, listed, listed_size = parts(data, lists, list_size, 9)
        list_owner = np.repeat(owners, np.diff(list_offsets)) if len(owners) else owners
        listed_owner = np.repeat(list_owner, np.diff(inner_offsets)) if len(list_owner) else list_owner
        direct_owner = np.repeat(owners, np.diff(direct_offsets)) if len(owners) else owners
        owner = np.concatenate([direct_owner, listed_owner])
        values, lengths, _, _ = spans(
            data,
            np.concatenate([direct, listed]),
            np.concatenate([direct_size, listed_size]),
            np.array([1], np.int64),
        )
        names = _texts(data, values[:, 0], lengths[:, 0])
        function_of_name = np.array([index.get(name, -1) for name in names.strings], np.int64)
        function = function_of_name[names.codes] if len(owner) else np.empty(0, np.int64)
        return np.stack([self.node[owner], function], 1)[function >= 0]
