"""Kernels of NCCL and RCCL in PyTorch's files → the operations by which ranks exchange data.

    rank 0   ▏all-to-all #1▕ ▏all-reduce #1▕  ▏all-to-all #2▕
    rank 3      ▏all-to-all #1▕ ▏all-reduce #1▕ ▏all-to-all #2▕

All ranks of a process group run its collectives in one order: the n-th of a kind in a step is the same
collective on all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.analysis.pod.gpu_transfers import gpu_exchanges
from tb_tpuprof.analysis.pod.transfers import TransferOp, transfer_ops
from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_DESCRIPTION = re.compile(r"\((.+)\)$")
_MOST_ORDINALS = 4096  # later collectives of a step count as its last


@dataclass(frozen=True)
class Comms:
    """The kernels of a trace that run collectives, by row of `events`, with the file's statements about each.

    Texts are string ids, -1 unknown, as for sizes: `in_bytes` and `out_bytes` of one rank, `size` ranks in
    the process group.
    """

    rows: Int64s
    kind: Int64s
    group: Int64s
    ranks: Int64s
    dtype: Int64s
    in_bytes: Int64s
    out_bytes: Int64s
    size: Int64s

    def __len__(self) -> int:
        return len(self.rows)


def comms(trace: Trace) -> Comms:
    """All collectives that PyTorch's profiler recorded on devices."""
    kind = trace.event_stats.texts("comm_kind")
    rows = kind.owner.astype(np.int64)
    texts = (_texts_of(trace, rows, name) for name in ("comm_group", "comm_ranks", "comm_dtype"))
    numbers = (
        values_at(rows, *first_ints(trace, name), -1)
        for name in ("comm_in_bytes", "comm_out_bytes", "comm_size")
    )
    return Comms(rows, kind.value.astype(np.int64), *texts, *numbers)


def _texts_of(trace: Trace, rows: Int64s, name: str) -> Int64s:
    sparse = trace.event_stats.texts(name)
    return values_at(rows, sparse.owner, sparse.value.astype(np.int64), -1)


def exchanges(
    trace: Trace, cores: Sequence[tuple[Int64s, Int64s]]
) -> tuple[tuple[TransferOp, ...], list[Int64s]]:
    """The transfers among the events (rows, steps) of each core, and the transfer of each event, -1 none."""
    if not trace.event_stats.has("comm_kind"):
        if planes(trace).gpus:
            return gpu_exchanges(trace, [rows for rows, _ in cores])
        metadata = [trace.events["metadata"][rows].astype(np.int64) for rows, _ in cores]
        ops, op_of_row = transfer_ops(trace, np.unique(np.concatenate([np.empty(0, np.int64), *metadata])))
        return ops, [op_of_row[selected] for selected in metadata]
    kernels = comms(trace)
    labels, label = _labels(trace, kernels)
    index: dict[tuple[int, int], int] = {}
    events: list[Int64s] = []
    op_of: list[Int64s] = []
    for rows, step in cores:
        kernel = np.searchsorted(kernels.rows, rows)
        selected = np.flatnonzero(
            (kernel < len(kernels)) & (kernels.rows[np.minimum(kernel, len(kernels) - 1)] == rows)
        )
        kernel = kernel[selected]
        ordinal = _ordinals(label[kernel], step[selected], trace.events["start_ps"][rows[selected]])
        pairs, inverse = distinct_rows(label[kernel], ordinal)
        codes = np.array([index.setdefault((a, b), len(index)) for a, b in pairs.tolist()], np.int64)
        op_of_event = np.full(len(rows), -1, np.int64)
        op_of_event[selected] = codes[inverse]
        op_of.append(op_of_event)
        events.append(np.stack((op_of_event[selected], kernel)))
    op_and_kernel = np.concatenate([np.empty((2, 0), np.int64), *events], axis=1)
    order = np.argsort(op_and_kernel[0], kind="stable")
    first = np.searchsorted(op_and_kernel[0][order], np.arange(len(index) + 1)).tolist()
    kernels_by_op = op_and_kernel[1][order]
    return tuple(
        _op(trace, kernels, kernels_by_op[first[i] : first[i + 1]], *labels[code], ordinal)
        for (code, ordinal), i in index.items()
    ), op_of


def _labels(trace: Trace, kernels: Comms) -> tuple[list[tuple[str, str]], Int64s]:
    """(kind, name of the group) pairs, and the pair of each collective.

    A group's name is the program's name for it (`mesh_tp`), since all groups of that name do the same; else
    its own name.
    """
    pairs, inverse = distinct_rows(kernels.kind, kernels.group)
    texts = []
    for kind, group in pairs.tolist():
        name = trace.strings.get(group)
        description = _DESCRIPTION.search(name)
        texts.append((trace.strings.get(kind), description[1] if description else name))
    distinct = sorted(set(texts))
    code = np.array([distinct.index(text) for text in texts], np.int64)
    return distinct, code[inverse]


def _ordinals(label: Int64s, step: Int64s, start: Int64s) -> Int64s:
    """The position of each event among those of its label and step, in time order."""
    order = np.lexsort((start, label, step))
    first = np.append(True, (np.diff(label[order]) != 0) | (np.diff(step[order]) != 0))[: len(order)]
    index = np.arange(len(order))
    ordinal = np.empty(len(order), np.int64)
    ordinal[order] = index - np.maximum.accumulate(np.where(first, index, 0)) if len(order) else index
    return np.minimum(ordinal, _MOST_ORDINALS)


def _op(trace: Trace, kernels: Comms, rows: Int64s, kind: str, group: str, ordinal: int) -> TransferOp:
    """The operation of these occurrences; its size is their mean."""
    ranks = {int(i) for i in kernels.ranks[rows].tolist() if i >= 0}
    groups = tuple(sorted(tuple(int(rank) for rank in trace.strings.get(i).split(",")) for i in ranks))
    dtypes = {trace.strings.get(int(i)) for i in kernels.dtype[rows].tolist() if i >= 0}
    size = int(kernels.size[rows].max())
    name = f"{kind} #{ordinal + 1}" + (f" of {group}" if group else "")
    op = TransferOp(
        name, kind, _size(kind, kernels.in_bytes[rows], kernels.out_bytes[rows], size), groups=groups
    )
    return replace(
        op, process_group=group, group_size=max(size, 0), dtype=", ".join(sorted(dtypes)), ordinal=ordinal
    )


def _size(kind: str, in_bytes: Int64s, out_bytes: Int64s, n: int) -> int:
    """Mean bytes of one rank, the larger of input and output; 0 if unknown.

    A file that states only the input determines the output of an all-gather only if it states the number of
    ranks.
    """
    larger = np.maximum(in_bytes, out_bytes)
    if kind in ("all-gather", "gather"):
        larger = np.where(out_bytes >= 0, larger, np.where((n > 0) & (in_bytes >= 0), in_bytes * n, -1))
    known_sizes = larger[larger >= 0]
    return round(float(known_sizes.mean())) if len(known_sizes) else 0


def merged(first: TransferOp, second: TransferOp) -> TransferOp:
    """Combine two hosts' views of an operation: all groups of both, the larger size (ranks of an all-to-all
    may differ).
    """
    return replace(
        first,
        groups=tuple(sorted({*first.groups, *second.groups})),
        size_bytes=max(first.size_bytes, second.size_bytes),
        group_size=max(first.group_size, second.group_size),
        dtype=first.dtype or second.dtype,
    )
