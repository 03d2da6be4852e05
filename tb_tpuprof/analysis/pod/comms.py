"""Kernels of NCCL and RCCL in PyTorch's files → the operations by which ranks exchange data.

rank 0   ▏all-to-all #1▕ ▏all-reduce #1▕  ▏all-to-all #2▕       All ranks of a process group run its
collectives in one order: rank 3      ▏all-to-all #1▕ ▏all-reduce #1▕ ▏all-to-all #2▕     the n-th of a kind
in a step is the same one on all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.analysis.pod.transfers import TransferOp, transfer_ops
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_DESCRIBED = re.compile(r"\((.+)\)$")
_MOST_ORDINALS = 4096  # later ones of a step count as its last


@dataclass(frozen=True)
class Comms:
    """The kernels of a trace that run collectives, by row of `events`, and what the file says of each.

    Texts are strings' ids, -1 unknown, as are sizes: `in_bytes` and `out_bytes` of one rank, `size` ranks in
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
    texts = (_text_at(trace, rows, name) for name in ("comm_group", "comm_ranks", "comm_dtype"))
    numbers = (
        values_at(rows, *first_ints(trace, name), -1)
        for name in ("comm_in_bytes", "comm_out_bytes", "comm_size")
    )
    return Comms(rows, kind.value.astype(np.int64), *texts, *numbers)


def _text_at(trace: Trace, rows: Int64s, name: str) -> Int64s:
    found = trace.event_stats.texts(name)
    return values_at(rows, found.owner, found.value.astype(np.int64), -1)


def exchanges(
    trace: Trace, cores: Sequence[tuple[Int64s, Int64s]]
) -> tuple[tuple[TransferOp, ...], list[Int64s]]:
    """The transfers among events (rows, steps) of each core, and for each event which one it is, -1 none."""
    if not trace.event_stats.has("comm_kind"):
        metadata = [trace.events["metadata"][rows].astype(np.int64) for rows, _ in cores]
        ops, op_of_row = transfer_ops(trace, np.unique(np.concatenate([np.empty(0, np.int64), *metadata])))
        return ops, [op_of_row[mine] for mine in metadata]
    known = comms(trace)
    labels, label = _labels(trace, known)
    number: dict[tuple[int, int], int] = {}
    events: list[Int64s] = []
    op_of: list[Int64s] = []
    for rows, step in cores:
        at = np.searchsorted(known.rows, rows)
        mine = np.flatnonzero((at < len(known)) & (known.rows[np.minimum(at, len(known) - 1)] == rows))
        at = at[mine]
        place = _ordinals(label[at], step[mine], trace.events["start_ps"][rows[mine]])
        pairs, inverse = np.unique(np.column_stack((label[at], place)), axis=0, return_inverse=True)
        codes = np.array([number.setdefault((a, b), len(number)) for a, b in pairs.tolist()], np.int64)
        op = np.full(len(rows), -1, np.int64)
        op[mine] = codes[inverse.reshape(-1)]
        op_of.append(op)
        events.append(np.stack((op[mine], at)))
    every = np.concatenate([np.empty((2, 0), np.int64), *events], axis=1)
    order = np.argsort(every[0], kind="stable")
    first = np.searchsorted(every[0][order], np.arange(len(number) + 1)).tolist()
    at_of = every[1][order]
    return tuple(
        _op(trace, known, at_of[first[i] : first[i + 1]], *labels[code], place)
        for (code, place), i in number.items()
    ), op_of


def _labels(trace: Trace, known: Comms) -> tuple[list[tuple[str, str]], Int64s]:
    """(kind, name of the group) pairs, and which of them each collective has.

    Groups are named by what the program calls them (`mesh_tp`), as all groups of that name do the same; else
    by their own name.
    """
    pairs, inverse = np.unique(np.column_stack((known.kind, known.group)), axis=0, return_inverse=True)
    texts = []
    for kind, group in pairs.tolist():
        name = trace.strings.get(group)
        described = _DESCRIBED.search(name)
        texts.append((trace.strings.get(kind), described[1] if described else name))
    distinct = sorted(set(texts))
    code = np.array([distinct.index(text) for text in texts], np.int64)
    return distinct, code[inverse.reshape(-1)] if len(code) else np.empty(0, np.int64)


def _ordinals(label: Int64s, step: Int64s, start: Int64s) -> Int64s:
    """The place of each event among those of its label and step, in time order."""
    order = np.lexsort((start, label, step))
    first = np.append(True, (np.diff(label[order]) != 0) | (np.diff(step[order]) != 0))[: len(order)]
    at = np.arange(len(order))
    place = np.empty(len(order), np.int64)
    place[order] = at - np.maximum.accumulate(np.where(first, at, 0)) if len(order) else at
    return np.minimum(place, _MOST_ORDINALS)


def _op(trace: Trace, known: Comms, at: Int64s, kind: str, group: str, place: int) -> TransferOp:
    """The operation that these occurrences are of; its size is their mean."""
    ranks = {int(i) for i in known.ranks[at].tolist() if i >= 0}
    groups = tuple(sorted(tuple(int(rank) for rank in trace.strings.get(i).split(",")) for i in ranks))
    dtypes = {trace.strings.get(int(i)) for i in known.dtype[at].tolist() if i >= 0}
    size = int(known.size[at].max())
    name = f"{kind} #{place + 1}" + (f" of {group}" if group else "")
    op = TransferOp(name, kind, _size(kind, known.in_bytes[at], known.out_bytes[at], size), groups=groups)
    return replace(
        op, process_group=group, group_size=max(size, 0), dtype=", ".join(sorted(dtypes)), ordinal=place
    )


def _size(kind: str, in_bytes: Int64s, out_bytes: Int64s, n: int) -> int:
    """Mean bytes of one rank, the larger of input and output; 0 where it is not known.

    Files that state the input alone do not tell what an all-gather gets out unless they tell the number of
    ranks.
    """
    larger = np.maximum(in_bytes, out_bytes)
    if kind in ("all-gather", "gather"):
        larger = np.where(out_bytes >= 0, larger, np.where((n > 0) & (in_bytes >= 0), in_bytes * n, -1))
    known = larger[larger >= 0]
    return round(float(known.mean())) if len(known) else 0


def merged(one: TransferOp, other: TransferOp) -> TransferOp:
    """An operation as two hosts tell of it: all groups of both, the larger size (ranks of an all-to-all may
    differ).
    """
    return replace(
        one,
        groups=tuple(sorted({*one.groups, *other.groups})),
        size_bytes=max(one.size_bytes, other.size_bytes),
        group_size=max(one.group_size, other.group_size),
        dtype=one.dtype or other.dtype,
    )
