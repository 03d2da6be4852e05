"""Track descriptors of a Perfetto trace → processes and threads as a Chrome trace has them.

    TrackDescriptor: 1 uuid, 2 name, 3 process, 4 thread, 5 parent, 8 counter, 10 static name
    ProcessDescriptor: 1 pid, 6 name     ThreadDescriptor: 1 pid, 2 tid, 5 name
    CounterDescriptor: 3 unit, 4 multiplier, 5 is incremental, 6 name of the unit

A track is a thread, or a line of its own in the process of the nearest track above that has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.ingest.perfetto.packets import TRACK, Packets, Spans, read_spans

_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER, _STATIC_NAME = 1, 2, 3, 4, 5, 8, 10
_PID, _TID, _THREAD_NAME, _PROCESS_NAME = 1, 2, 5, 6
_UNIT, _MULTIPLIER, _IS_INCREMENTAL, _UNIT_NAME = 3, 4, 5, 6
_UNITS = {1: "ns", 2: "count", 3: "bytes"}
_DEEPEST = 64
_LONGEST_NAME = 1000
NO_PROCESS = "0"


@dataclass(frozen=True)
class Counter:
    """How the values of a counter's track are to be read."""

    unit: str
    multiplier: int
    is_incremental: bool


@dataclass(frozen=True)
class Track:
    """A track, with the texts that identify its process and thread, and their names ("" for unknown ones)."""

    pid: str
    tid: str
    process_name: str
    name: str
    counter: Counter | None = None


@dataclass(frozen=True)
class _Descriptor:
    parent: int
    name: str
    pid: str
    process_name: str
    tid: str
    counter: Counter | None


def tracks_of(packets: Packets, used: Iterable[int], with_all: bool = False) -> dict[int, Track]:
    """The tracks with these uuids; those without a descriptor have their uuid for a name. `with_all`: and all
    others that the file describes.
    """
    descriptors = _descriptors(packets)
    processes = {one.pid: one.process_name for one in descriptors.values() if one.process_name}
    uuids = dict.fromkeys((*used, *(descriptors if with_all else ())))
    return {uuid: _track(uuid, descriptors, processes) for uuid in uuids}


def _track(uuid: int, descriptors: dict[int, _Descriptor], processes: dict[str, str]) -> Track:
    own = descriptors.get(uuid)
    if own is None:
        number = f"{uuid & (2**64 - 1):x}"
        return Track(
            NO_PROCESS, f"track {number}", "", f"Track {number}" if uuid else "Events without a track"
        )
    above, at = own, own
    for _ in range(_DEEPEST):
        if above.pid or above.parent not in descriptors:
            break
        above = descriptors[above.parent]
    name = own.name
    for _ in range(_DEEPEST):  # the name of the nearest track above that has one
        if name or at.tid or at.parent not in descriptors:
            break
        at = descriptors[at.parent]
        name = at.name or at.process_name
    tid = own.tid or f"track {uuid & (2**64 - 1):x}"
    return Track(above.pid or NO_PROCESS, tid, processes.get(above.pid, ""), name, own.counter)


def _descriptors(packets: Packets) -> dict[int, _Descriptor]:
    """The last descriptor of each uuid."""
    rows = np.flatnonzero(packets.fields[TRACK].is_bytes)
    rows = rows[np.argsort(packets.ordinal[rows], kind="stable")]
    data = packets.data
    own = read_spans(
        data,
        packets.fields[TRACK].at(rows),
        (_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER, _STATIC_NAME),
    )
    uuid = own[_UUID].numbers()
    _, last = np.unique(uuid[::-1], return_index=True)
    chosen = len(uuid) - 1 - last
    own = {number: spans.at(chosen) for number, spans in own.items()}
    process = read_spans(data, own[_PROCESS], (_PID, _PROCESS_NAME))
    thread = read_spans(data, own[_THREAD], (_PID, _TID, _THREAD_NAME))
    counter = read_spans(data, own[_COUNTER], (_UNIT, _MULTIPLIER, _IS_INCREMENTAL, _UNIT_NAME))

    def text(spans: Spans, i: int) -> str:
        size = min(int(spans.size[i]), _LONGEST_NAME)
        if size <= 0:
            return ""
        start = int(spans.value[i])
        return data[start : start + size].tobytes().decode("utf-8", "replace")

    def number(spans: Spans, i: int) -> str:
        return str(int(spans.value[i])) if spans.size[i] == 0 else ""

    return {
        int(uuid[chosen[i]]): _Descriptor(
            int(own[_PARENT].numbers()[i]),
            text(own[_NAME], i) or text(own[_STATIC_NAME], i) or text(thread[_THREAD_NAME], i),
            number(process[_PID], i) or number(thread[_PID], i),
            text(process[_PROCESS_NAME], i),
            number(thread[_TID], i),
            Counter(
                text(counter[_UNIT_NAME], i) or _UNITS.get(int(counter[_UNIT].numbers()[i]), ""),
                int(counter[_MULTIPLIER].numbers(1)[i]) or 1,
                bool(counter[_IS_INCREMENTAL].numbers()[i]),
            )
            if own[_COUNTER].size[i] >= 0
            else None,
        )
        for i in range(len(chosen))
    }
