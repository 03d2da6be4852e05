"""The bytes of a TensorFlow GraphDef -> columns of its nodes and of those of its functions. No Python per
node.

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
    inside = (
        np.repeat(np.arange(len(body_start), dtype=np.int32), np.diff(offsets))
        if len(body_start)
        else np.empty(0, np.int32)
    )
    function = np.concatenate([np.full(len(node_start), -1, np.int32), inside])
    values, found, _, bad = spans(data, starts, sizes, np.array([1, 2, 4], np.int64))
    good = bad == 0
    n_damaged = int((~good).sum())
    starts, sizes, function, values, found = (
        starts[good],
        sizes[good],
        function[good],
        values[good],
        found[good],
    )
    functions = _function_names(data, body_start, body_size)
    found = np.where(_is_text(values, found, len(data)), found, 0)
    name_start, name_size = np.ascontiguousarray(values[:, 0]), np.ascontiguousarray(found[:, 0])
    attributes = _Attributes(data, starts, sizes)
    return Graph(
        data,
        name_start,
        name_size,
        _texts(data, values[:, 1], found[:, 1]),
        _texts(data, values[:, 2], found[:, 2]),
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
    )


def _is_text(
    values: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], limit: int
) -> npt.NDArray[np.bool_]:
    """Which spans are inside of the data: a hostile file may have a number where a text should be, whose size
    is none.
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
    """Bytes of each name up to its last slash, 0 where it has none."""
    slashes = np.flatnonzero(data == _SLASH)
    if not len(slashes):
        return np.zeros(len(starts), np.int64)
    last = np.searchsorted(slashes, starts + sizes) - 1
    at = slashes[np.maximum(last, 0)]
    return np.where((last >= 0) & (at >= starts) & (sizes > 0), at - starts, 0).astype(np.int64)


def _function_names(data: Bytes, starts: Ints, sizes: Ints) -> tuple[str, ...]:
    signatures, lengths, _, _ = spans(data, starts, sizes, np.array([1], np.int64))
    inside = _is_text(signatures, lengths, len(data))
    a, n = np.where(inside, signatures, 0)[:, 0], np.where(inside, lengths, 0)[:, 0]
    names, name_sizes, _, _ = spans(
        data, np.ascontiguousarray(a), np.ascontiguousarray(n), np.array([1], np.int64)
    )
    fits = _is_text(names, name_sizes, len(data))[:, 0]
    return tuple(
        _text(data, start, size) if is_text else ""
        for start, size, is_text in zip(names[:, 0], name_sizes[:, 0], fits, strict=True)
    )


class _Attributes:
    """All attributes of all nodes: whose they are, their keys and where their values lie."""

    def __init__(self, data: Bytes, starts: Ints, sizes: Ints) -> None:
        self.data = data
        offsets, entry_start, entry_size = parts(data, starts, sizes, 5)
        self.node = (
            np.repeat(np.arange(len(starts), dtype=np.int64), np.diff(offsets))
            if len(starts)
            else np.empty(0, np.int64)
        )
        values, found, _, _ = spans(data, entry_start, entry_size, np.array([1, 2], np.int64))
        self.keys = _texts(data, values[:, 0], found[:, 0])
        inside = _is_text(values[:, 1], found[:, 1], len(data))
        self.start, self.size = np.where(inside, values[:, 1], 0), np.where(inside, found[:, 1], 0)

    def has(self, keys: tuple[str, ...], n_nodes: int) -> npt.NDArray[np.bool_]:
        """Which nodes have one of these attributes."""
        codes = [code for code, key in enumerate(self.keys.strings) if key in keys]
        result = np.zeros(n_nodes, np.bool_)
        result[self.node[np.isin(self.keys.codes, codes)]] = True
        return result

    def types(self) -> Ints:
        """(node, key, type) of each attribute that is a type, or of each of a list of types."""
        values, found, counts, _ = spans(self.data, self.start, self.size, np.array([1, 6], np.int64), 1)
        single = np.flatnonzero((counts > 0) & (found[:, 1] <= 8))
        lists = np.flatnonzero(_is_text(values[:, 0], found[:, 0], len(self.data)))
        offsets, listed = ints(
            self.data, np.ascontiguousarray(values[lists, 0]), np.ascontiguousarray(found[lists, 0]), 6
        )
        owner = np.concatenate([single, np.repeat(lists, np.diff(offsets))]).astype(np.int64)
        number = np.concatenate([values[single, 1], listed])
        return np.stack([self.node[owner], self.keys.codes[owner].astype(np.int64), number], 1)

    def calls(self, functions: tuple[str, ...]) -> Ints:
        """(node, function) of each function that an attribute names, or each of a list of functions."""
        data, index = self.data, {name: i for i, name in enumerate(functions)}
        owners = np.arange(len(self.node), dtype=np.int64)
        direct_offsets, direct, direct_size = parts(data, self.start, self.size, 10)
        list_offsets, lists, list_size = parts(data, self.start, self.size, 1)
        inner_offsets, listed, listed_size = parts(data, lists, list_size, 9)
        list_owner = np.repeat(owners, np.diff(list_offsets)) if len(owners) else owners
        listed_owner = np.repeat(list_owner, np.diff(inner_offsets)) if len(list_owner) else list_owner
        direct_owner = np.repeat(owners, np.diff(direct_offsets)) if len(owners) else owners
        owner = np.concatenate([direct_owner, listed_owner])
        values, found, _, _ = spans(
            data,
            np.concatenate([direct, listed]),
            np.concatenate([direct_size, listed_size]),
            np.array([1], np.int64),
        )
        names = _texts(data, values[:, 0], found[:, 0])
        of = np.array([index.get(name, -1) for name in names.strings], np.int64)
        function = of[names.codes] if len(owner) else np.empty(0, np.int64)
        return np.stack([self.node[owner], function], 1)[function >= 0]
