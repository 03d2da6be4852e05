"""NCCL's and RCCL's kernels in Kineto's files → stats with the collective that each one ran, its size and its
ranks.

    record_param_comms  ▏───────────────▏    "Collective name" allreduce, "In msg nelems" 8, "dtype" Float,
                                             "Process Group Ranks" [0, 1]
      nccl:all_reduce     ▏───────────▏      "Input Dims" [[8]], "Input type" ["float"]
        cudaLaunchKernel     ▏──▏            correlation 9
    ncclDevKernel_Generic             ▏──────────▏   correlation 9 → comm_kind all-reduce, comm_in_bytes 32,
                                                     comm_ranks 0,1

A kernel's own arguments win (PyTorch 2.3 and later), then those of the `record_param_comms` that launched it,
then the name and the inputs of the `nccl:…` range around its launch (before 2.2). A fact that none of them
states has no stat: it is unknown, not 0. Source of the names: PyTorch's `ParamCommsUtils` and Kineto's
`output_json` (collective metadata).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import RawEvents, object_at
from tb_tpuprof.ingest.chrome.kineto import KERNEL, LAUNCH, Stat, dense
from tb_tpuprof.ingest.chrome.slices import DEVICE, THREAD, Slices
from tb_tpuprof.native import nest
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.collectives import UNKNOWN_KIND, element_bytes, is_collective_kernel, kind_named

Int64s = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Data = npt.NDArray[np.uint8]

_RANGE = re.compile(rb"(?:nccl|rccl|c10d)::?\w+")
_PARAM_COMMS = b"record_param_comms"
_NUMBERS = (
    "In msg nelems",
    "Out msg nelems",
    "In msg size",
    "Out msg size",
    "Group size",
    "Global rank start",
    "Global rank stride",
    "Seq",
)
_TEXTS = (
    "Collective name",
    "dtype",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
)
_MOST_READ = 50_000
_MOST_RANKS, _LARGEST_RANK, _MOST_DIGITS = 1 << 16, 2**31 - 1, 10
_MOST_GROUPS, _LONGEST_TEXT = 4096, 200


@dataclass(frozen=True)
class _Collective:
    """Facts of one kernel's collective; -1 and "" for unknown ones."""

    kind: str
    in_bytes: int = -1
    out_bytes: int = -1
    dtype: str = ""
    group: str = ""
    size: int = -1
    ranks: str = ""
    seq: int = -1


def collective_stats(
    raw: RawEvents, slices: Slices, line: Array, role: npt.NDArray[np.uint8], data: Data
) -> list[Stat]:
    """Stats of the kernels that run collectives: `comm_kind`, `comm_in_bytes`, `comm_out_bytes`,
    `comm_dtype`, `comm_group`, `comm_size` (ranks in the group), `comm_ranks`, `comm_seq`.
    """
    slice_role = role[slices.raw]
    is_comm = np.array(
        [*(is_collective_kernel(raw.texts.get(i)) for i in range(len(raw.texts.items))), False]
    )
    rows = np.flatnonzero((slice_role == KERNEL) & (slices.kind == DEVICE) & is_comm[raw["name"][slices.raw]])
    if not len(rows):
        return []
    param_event, range_event = _sources(raw, slices, line, slice_role, rows)
    reader = _CollectiveReader(raw, data)
    collectives = [
        reader.of(*key)
        for key in zip(slices.raw[rows].tolist(), param_event.tolist(), range_event.tolist(), strict=True)
    ]
    return _as_stats(raw, rows, collectives)


def _sources(
    raw: RawEvents, slices: Slices, line: Array, slice_role: Array, rows: Array
) -> tuple[Int64s, Int64s]:
    """Raw events of the `record_param_comms` and of the `nccl:…` range that launched each kernel, -1 if there
    is none.
    """
    n = len(raw.texts.items)
    is_param, is_range = np.zeros(n + 1, np.bool_), np.zeros(n + 1, np.bool_)
    for i, text in enumerate(raw.texts.items):
        is_param[i] = text == _PARAM_COMMS
        is_range[i] = bool(_RANGE.fullmatch(text))
    name, on_thread = raw["name"][slices.raw], slices.kind == THREAD
    correlation = dense(raw, "correlation", (schema.INT,))[slices.raw]
    launches = np.flatnonzero(
        (slice_role == LAUNCH) & on_thread & (correlation > 0) & np.isin(correlation, correlation[rows])
    )
    launched_by = []
    for is_sought in (is_param, is_range):
        ranges = np.flatnonzero(on_thread & (slices.duration_ps > 0) & is_sought[name])
        around = _innermost(slices, line, ranges, launches)
        launched_by.append(
            _last_values(
                correlation[launches],
                np.where(around >= 0, slices.raw[np.maximum(around, 0)], -1),
                correlation[rows],
            )
        )
    external = np.maximum(dense(raw, "External id", (schema.INT,)), dense(raw, "external id", (schema.INT,)))
    params = np.flatnonzero(is_param[raw["name"]] & (external > 0))
    by_id = _last_values(external[params], params.astype(np.int64), external[slices.raw[rows]])
    return np.where(launched_by[0] >= 0, launched_by[0], by_id), launched_by[1]


def _innermost(slices: Slices, line: Array, ranges: Array, points: Array) -> Int64s:
    """For each of the slices `points`, the innermost of the slices `ranges` around its start on its line; -1
    if there is none.
    """
    if not len(ranges) or not len(points):
        return np.full(len(points), -1, np.int64)
    rows = np.union1d(ranges, points)
    offsets = np.searchsorted(line[rows], np.arange(int(line[rows].max()) + 2)).astype(np.int64)
    start = slices.start_ps[rows]
    is_point = np.isin(rows, points)
    parent, _ = nest(start, start + np.where(is_point, 0, slices.duration_ps[rows]), offsets)
    above = parent[is_point].astype(np.int64)
    result: Int64s = np.where(above >= 0, rows[np.maximum(above, 0)], -1)
    return result


def _last_values(keys: Int64s, values: Int64s, sought: Int64s) -> Int64s:
    """For each sought key above 0, the value of the last equal key, -1 if there is none."""
    if not len(keys):
        return np.full(len(sought), -1, np.int64)
    distinct, last = np.unique(keys[::-1], return_index=True)
    index = np.minimum(np.searchsorted(distinct, sought), len(distinct) - 1)
    matched: Int64s = np.where((distinct[index] == sought) & (sought > 0), values[::-1][last[index]], -1)
    return matched


class _CollectiveReader:
    """Reads the collectives' facts from events, each event once."""

    def __init__(self, raw: RawEvents, data: Data) -> None:
        self.raw, self.data = raw, data
        self.numbers = {name: dense(raw, name, (schema.INT,)) for name in _NUMBERS}
        self.texts = {name: dense(raw, name, (schema.TEXT, schema.INT)) for name in _TEXTS}
        self.known: dict[tuple[int, int, int], _Collective] = {}
        self.inputs: dict[int, int] = {}
        self.groups = _groups_listed(raw)

    def of(self, kernel: int, param_event: int, range_event: int) -> _Collective:
        """The collective of a kernel, from its own arguments, else from those of its launch."""
        event_with_facts = next(
            (
                event
                for event in (kernel, param_event)
                if event >= 0 and self.texts["Collective name"][event] >= 0
            ),
            -1,
        )
        kernel_name = self.raw.texts.get(int(self.raw["name"][kernel]))
        range_name = self.raw.texts.get(int(self.raw["name"][range_event])) if range_event >= 0 else ""
        if event_with_facts < 0:
            kind = kind_named(range_name.partition(":")[2]) or kind_named(kernel_name) or UNKNOWN_KIND
            return _Collective(kind, self._input_bytes(range_event))
        return self._stated(event_with_facts, range_name, kernel_name)

    def _stated(self, event: int, range_name: str, kernel_name: str) -> _Collective:
        text: Callable[[str], str] = lambda name: self.raw.texts.get(int(self.texts[name][event]))  # noqa: E731
        number: Callable[[str], int] = lambda name: int(self.numbers[name][event])  # noqa: E731
        kind = (
            kind_named(text("Collective name"))
            or kind_named(range_name.partition(":")[2])
            or kind_named(kernel_name)
            or UNKNOWN_KIND
        )
        dtype = text("dtype")
        width = element_bytes(dtype)
        sizes = [max(number(f"{side} msg nelems"), number(f"{side} msg size")) for side in ("In", "Out")]
        in_bytes, out_bytes = (size * width if width and size >= 0 else -1 for size in sizes)
        group, listed_ranks = text("Process Group Name"), self.groups.get(text("Process Group Name"), ())
        ranks = listed_ranks or _ranks(text("Process Group Ranks"), number)
        size = number("Group size") if number("Group size") > 0 else len(ranks) or -1
        description = text("Process Group Description")
        label = " ".join(
            part
            for part in (group, f"({description})" if description and description != "undefined" else "")
            if part
        )
        return _Collective(
            kind, in_bytes, out_bytes, dtype, label, size, ",".join(map(str, ranks)), number("Seq")
        )

    def _input_bytes(self, event: int) -> int:
        """Bytes of the tensors that a range records as its inputs, -1 if it records none."""
        if event < 0 or (event not in self.inputs and len(self.inputs) >= _MOST_READ):
            return -1
        if event not in self.inputs:
            self.inputs[event] = _tensor_bytes(
                object_at(self.data, int(self.raw["position"][event])).get("args")
            )
        return self.inputs[event]


def _tensor_bytes(arguments: Any) -> int:
    """Bytes of all tensors by `Input Dims` and `Input type`; -1 if these are missing or contain an unknown
    type.
    """
    if not isinstance(arguments, dict):
        return -1
    dims, types = arguments.get("Input Dims"), arguments.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list):
        return -1
    total, is_known = 0, False
    for shape, dtype in zip(dims, types, strict=False):
        if (
            not isinstance(shape, list)
            or not shape
            or not all(isinstance(size, int) and size >= 0 for size in shape)
        ):
            continue
        width = element_bytes(str(dtype))
        if not width:
            return -1
        total, is_known = total + width * int(np.prod(np.array(shape, object))), True
    return total if is_known and total < 2**62 else -1


def _groups_listed(raw: RawEvents) -> dict[str, tuple[int, ...]]:
    """Ranks of each process group by name, from `distributedInfo`; lists that do not have `pg_size` ranks are
    left out.
    """
    info = raw.members.get("distributedInfo")
    entries = info.get("pg_config") if isinstance(info, dict) else None
    ranks_of_group = {}
    for entry in entries if isinstance(entries, list) else []:
        ranks = entry.get("ranks") if isinstance(entry, dict) else None
        if isinstance(ranks, list) and _are_ranks(ranks) and len(ranks) == entry.get("pg_size"):
            ranks_of_group[str(entry.get("pg_name", ""))] = tuple(ranks)
    return ranks_of_group


def _are_ranks(values: list[Any]) -> bool:
    """Whether a list from a file has ranks, and nothing else."""
    are_numbers = all(type(rank) is int and 0 <= rank <= _LARGEST_RANK for rank in values)
    return 0 < len(values) <= _MOST_RANKS and are_numbers


def _ranks(text: str, number: Callable[[str], int]) -> tuple[int, ...]:
    """The ranks of `[0, 1, 2]`. Kineto truncates long lists (`[0, 1, …, ...]`): then they follow from start,
    stride and size of the group.
    """
    if text and "..." not in text:
        words = re.findall(r"\d+", text)
        listed = [int(word) for word in words if len(word) <= _MOST_DIGITS]
        if len(listed) == len(words) and _are_ranks(listed):
            return tuple(listed)
    start, stride, size = number("Global rank start"), number("Global rank stride"), number("Group size")
    if start < 0 or stride <= 0 or not 0 < size <= _MOST_RANKS:
        return ()
    return tuple(range(start, start + stride * size, stride))


def _as_stats(raw: RawEvents, rows: Array, collectives: list[_Collective]) -> list[Stat]:
    stats = []
    for name, field in (
        ("comm_kind", "kind"),
        ("comm_dtype", "dtype"),
        ("comm_group", "group"),
        ("comm_ranks", "ranks"),
    ):
        texts = [getattr(collective, field) for collective in collectives]
        ids = {text: raw.texts.add(text) if text else -1 for text in set(texts)}
        values = np.array([ids[text] for text in texts], np.int64)
        stats.append(Stat(name, rows[values >= 0], schema.TEXT, values[values >= 0]))
    for name, field in (
        ("comm_in_bytes", "in_bytes"),
        ("comm_out_bytes", "out_bytes"),
        ("comm_size", "size"),
        ("comm_seq", "seq"),
    ):
        values = np.array([getattr(collective, field) for collective in collectives], np.int64)
        stats.append(Stat(name, rows[values >= 0], schema.INT, values[values >= 0]))
    return stats


def _groups_text(entries: Any) -> str:
    """The process groups in `pg_config` as JSON: name, description, backend, number of ranks (-1 unknown),
    ranks; empty if there are none.
    """
    listed = []
    for entry in entries[:_MOST_GROUPS] if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        texts = [str(entry.get(key, ""))[:_LONGEST_TEXT] for key in ("pg_name", "pg_desc", "backend_config")]
        size, ranks = entry.get("pg_size"), entry.get("ranks")
        listed_ranks = ranks if isinstance(ranks, list) and _are_ranks(ranks) else []
        texts[1] = "" if texts[1] == "undefined" else texts[1]
        n_ranks = size if type(size) is int and 0 < size <= _LARGEST_RANK else -1
        listed.append([*texts, n_ranks, listed_ranks if len(listed_ranks) == n_ranks else []])
    return json.dumps(listed) if listed else ""


def job_stats(raw: RawEvents, n_planes: int) -> list[tuple[int, str, int, int, int]]:
    """`distributedInfo` as stats of all planes: `comm_rank`, `comm_world_size`, `comm_backend`; of the first
    plane: `comm_groups`; without those that the file lacks.
    """
    info = raw.members.get("distributedInfo")
    if not isinstance(info, dict):
        return []
    stats = []
    for member, stat_name in (("rank", "comm_rank"), ("world_size", "comm_world_size")):
        value = info.get(member)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
            stats += [(plane, stat_name, schema.INT, value, 0) for plane in range(n_planes)]
    groups = _groups_text(info.get("pg_config"))
    if groups and n_planes:
        stats.append((0, "comm_groups", schema.TEXT, raw.texts.add(groups), 0))
    if isinstance(info.get("backend"), str):
        stats += [
            (plane, "comm_backend", schema.TEXT, raw.texts.add(info["backend"][:100]), 0)
            for plane in range(n_planes)
        ]
    return stats
