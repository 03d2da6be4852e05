"""The bytes of a Chrome trace → its raw events as columns, its texts, and the file's other members.

Nothing is matched or sorted here: a row is an object of `traceEvents`, in the file's order.
"""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.native import scan
from tb_tpuprof.native.machine_memory import max_events
from tb_tpuprof.trace import schema

Ints = npt.NDArray[Any]
MAX_EVENTS = 2**31 - 2
_MAX_MEMBER_BYTES = 64 * 2**20
UNREAD_MEMBERS = (
    "systemTraceEvents",
    "traceAnnotations",
    "powerTraceAsString",
    "controllerTraceDataKey",
    "heapSnapshot",
)
AMD_MEMBERS = ("hip_runtime_version", "hip_driver_version", "roctracer_version")
USED_MEMBERS = frozenset(
    name.encode()
    for name in (
        *UNREAD_MEMBERS,
        *AMD_MEMBERS,
        "baseTimeNanoseconds",
        "deviceProperties",
        "distributedInfo",
        "stackFrames",
        "ERROR",
        "WARNING",
    )
)
_MAX_OBJECT_BYTES = 64 * 2**20
SPAN_US = 2**61 // 10**6

# Arguments that are decoded on opening, in addition to the stats that analyses read (see kineto.py).
KINETO_ARGUMENTS = (
    "correlation",
    "graph id",
    "graph node id",
    "External id",
    "external id",
    "grid",
    "block",
    "registers per thread",
    "shared memory",
    "device",
    "stream",
    "est. achieved occupancy %",
    "Total Allocated",
    "Total Reserved",
    "Device Id",
    "Device Type",
    "Bytes",
    "bytes",
    "Addr",
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "In msg size",
    "Out msg size",
    "dtype",
    "Group size",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
    "Global rank start",
    "Global rank stride",
    "Seq",
    "Input Dims",
    "Input dims",
    "Input type",
    "Concrete Inputs",
    "Call stack",
)
HOT = tuple(
    dict.fromkeys(
        (*schema.HOT_STATS, *(stat for stats in schema.DEVICE_STATS.values() for stat in stats), "long_name")
    )
)
DECODED_ARGUMENTS = tuple(dict.fromkeys((*HOT, *KINETO_ARGUMENTS, "step")))


class Texts:
    """The distinct texts of a file; more can be added."""

    def __init__(self, items: list[bytes]) -> None:
        self.items = items

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {text: i for i, text in reversed(list(enumerate(self.items)))}

    def add(self, text: str) -> int:
        """Id of a text, which is added if it is new."""
        encoded = text.encode("utf-8", "replace")
        number = self._ids.setdefault(encoded, len(self.items))
        if number == len(self.items):
            self.items.append(encoded)
        return number

    def find(self, text: str) -> int:
        """Id of a text, -1 if absent."""
        return self._ids.get(text.encode("utf-8", "replace"), -1)

    def get(self, number: int) -> str:
        """The text, or "" for -1 (none)."""
        return self.items[number].decode("utf-8", "replace") if number >= 0 else ""


@dataclass
class RawEvents:
    """Columns of the scanner (native/plain/json_events.py). `start_ps` is on the trace's clock, valid where
    `usable`; `n_moved` events were weeks from the others and start with the first or the last of these.
    `n_lost_blocks` parts of the file were damaged; `notes` say what the file itself leaves out.
    """

    columns: dict[str, Ints]
    values: dict[str, Ints]
    texts: Texts
    members: dict[str, Any]
    start_ps: npt.NDArray[np.int64]
    usable: npt.NDArray[np.bool_]
    start_ns: int
    bad: int
    n_left_out: int
    n_moved: int = 0
    n_lost_blocks: int = 0
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Ints:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["position"])

    def rows(self, phases: str) -> npt.NDArray[np.intp]:
        """Usable events of the phases, in the file's order."""
        return np.flatnonzero(self.usable & np.isin(self.columns["phase"], [ord(phase) for phase in phases]))

    def argument(self, name: str) -> tuple[Ints, Ints, Ints]:
        """(events in ascending order, kinds, values) of one of DECODED_ARGUMENTS."""
        has_name = self.values["key"] == self.texts.find(name)
        return self.values["event"][has_name], self.values["kind"][has_name], self.values["value"][has_name]


def read_events(data: npt.NDArray[np.uint8], path: str) -> RawEvents:
    """Scan a whole file. Raises TraceFormatError if it is not a Chrome trace or is damaged before its first
    event.
    """
    scanned = scan(
        data, [name.encode() for name in DECODED_ARGUMENTS], int.from_bytes(os.urandom(8), "little")
    )
    columns, bad = scanned["events"], int(scanned["bad"])
    names = {name for name, _, _ in scanned["members"]}
    if not len(columns["position"]):
        if bad >= 0:
            raise TraceFormatError(path, bad, "is cut off, damaged or not JSON")
        if scanned["n_others"] or (scanned["members"] and b"traceEvents" not in names):
            raise TraceFormatError(path, -1, "is JSON without the traceEvents of a Chrome trace", _NO_EVENTS)
    n_events = len(columns["position"])
    if n_events > min(MAX_EVENTS, max_events()):
        raise TraceFormatError(
            path,
            -1,
            f"contains {n_events:,} events, more than fit into this machine's memory",
            "Profile for a shorter time.",
        )
    texts, columns, values = _unescaped(scanned["blob"], scanned["offsets"], columns, scanned["values"])
    times = times_of(columns)
    members = {
        name.decode("utf-8", "replace"): _member(data, name, start, end)
        for name, start, end in scanned["members"]
        if name in USED_MEMBERS
    }
    is_timeless = ~times.usable & (columns["phase"] != ord("M"))
    n_left_out = int(scanned["n_others"]) + int(is_timeless.sum())
    base_ns = members.get("baseTimeNanoseconds", 0)
    start_ns = (base_ns if isinstance(base_ns, int) and abs(base_ns) < 2**62 else 0) + times.start_us * 1000
    return RawEvents(
        columns,
        values,
        texts,
        members,
        times.start_ps,
        times.usable,
        start_ns if abs(start_ns) < 2**62 else 0,
        bad,
        n_left_out,
        times.n_moved,
    )


_NO_EVENTS = (
    "Export it as Chrome trace JSON (PyTorch: prof.export_chrome_trace). Other formats, such as "
    "Google Cloud Trace, are not supported."
)


def object_at(data: npt.NDArray[np.uint8], position: int) -> dict[str, Any]:
    """The JSON object that starts at a position, {} if it cannot be read."""
    size = 1 << 12
    while size <= _MAX_OBJECT_BYTES:
        try:
            part = data[position : position + size].tobytes().decode("utf-8", "replace")
            value, _ = json.JSONDecoder(strict=False).raw_decode(part)
            return value if isinstance(value, dict) else {}
        except RecursionError:
            return {}
        except ValueError:
            if position + size >= len(data):
                return {}
            size *= 16
    return {}


def _member(data: npt.NDArray[np.uint8], name: bytes, start: int, end: int) -> Any:
    """A member's value; (position, size) for stack frames and very large members."""
    if name in (b"traceEvents", b"samples"):
        return None
    if name == b"stackFrames" or end - start > _MAX_MEMBER_BYTES:
        return start, end - start
    try:
        return json.loads(data[start:end].tobytes().decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def _unescaped(
    blob: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    columns: dict[str, Ints],
    values: dict[str, Ints],
) -> tuple[Texts, dict[str, Ints], dict[str, Ints]]:
    """Texts with JSON's escapes decoded; texts that become equal are merged."""
    whole, bounds = blob.tobytes(), offsets.tolist()
    items = [whole[a:b] for a, b in itertools.pairwise(bounds)]
    escaped = np.unique(np.searchsorted(offsets, np.flatnonzero(blob == ord("\\")), "right") - 1).tolist()
    if not escaped:
        return Texts(items), columns, values
    id_of = {text: i for i, text in reversed(list(enumerate(items)))}
    new_id = np.arange(len(items), dtype=np.int32)
    for i in escaped:
        items[i] = without_escapes(items[i])
        new_id[i] = id_of.setdefault(items[i], i)
    for name in ("name", "cat", "pid", "tid"):
        columns[name] = np.where(columns[name] >= 0, new_id[columns[name]], -1).astype(np.int32)
    values["key"] = new_id[values["key"]]
    is_text = values["kind"] == schema.TEXT
    values["value"][is_text] = new_id[values["value"][is_text]]
    return Texts(items), columns, values


def without_escapes(text: bytes) -> bytes:
    """The text of a JSON string, from what stands between its quotes."""
    try:
        decoded = json.loads(f'"{text.decode("utf-8", "replace")}"', strict=False)
    except ValueError:
        return text  # such as a path with lone backslashes, which some writers forget to escape
    return str(decoded).encode("utf-8", "replace")


@dataclass(frozen=True)
class Times:
    """Starts of all events in ps from `start_us`, whether each has one, and how many were moved."""

    start_ps: npt.NDArray[np.int64]
    usable: npt.NDArray[np.bool_]
    start_us: int
    n_moved: int = 0


def times_of(columns: dict[str, Ints]) -> Times:
    """Times on the trace's clock. Events that are weeks away from most others (such as a `ts` of 0 among
    times since 1970) are moved to the first or the last of these: int64 holds no such distance in ps.
    """
    us = columns["us"]
    usable = ((columns["flags"] & 1) > 0) & (columns["phase"] != ord("M"))
    if not usable.any():
        return Times(np.zeros(len(us), np.int64), usable, 0)
    usable_us = us[usable]
    n_moved = 0
    if int(usable_us.max()) - int(usable_us.min()) >= SPAN_US:
        median_us = int(np.partition(usable_us, len(usable_us) // 2)[len(usable_us) // 2])
        is_near = (usable_us > median_us - SPAN_US // 2) & (usable_us < median_us + SPAN_US // 2)
        us = np.clip(us, usable_us[is_near].min(), usable_us[is_near].max())
        n_moved = int((~is_near).sum())
        usable_us = us[usable]
    start_us = int(usable_us.min())
    start_ps = np.where(usable, us, start_us) - start_us
    return Times(start_ps * 10**6 + columns["rest_ps"], usable, start_us, n_moved)
