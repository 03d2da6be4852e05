"""Memory beside the peer's recorded answers, and beside a replay of the events as protobuf reads them from
the file.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tb_tpuprof.analysis.memory.events import MemoryEvents, memory_events
from tb_tpuprof.analysis.memory.peak import active_allocations, memory_peak
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.conformance.peer import NAMES, answer, open_session

# Runs in which the peer's list of active allocations differs from what a replay of all events finds, and why.
PEAK_STEP = (
    "the peer counts only allocations of the peak's step; those of earlier steps that are not freed "
    "are active too"
)
LINE_ORDER = (
    "the peer sorts by time since each thread's first event, so events of several threads change places"
)
OTHER_ACTIVE = {
    ("xprof_gpu_multi_worker__GPU-multi-worker", "gpu_host_bfc"): PEAK_STEP,
    ("tracelens_mi300_jax__jax08_attention", "GPU_0_bfc"): LINE_ORDER,
    **{("tracelens_mi300_jax__jax_conv_minimal_08", f"GPU_{i}_bfc"): PEAK_STEP for i in range(1, 8)},
}
# The lifetime peak: the peer shows what the event that it takes for the last reports. An allocator's stack is
# not in that figure on TPUs, so that the peer's lifetime peak is below the capture's; ours is at least what
# the capture shows.
OTHER_LIFETIME = {
    *(("xprof_tpu_inference_2_old__run", str(i)) for i in range(4)),
    ("xprof_gpu_multi_worker__GPU-multi-worker", "GPU_4_bfc"),
}  # fmt: skip


def ours(name: str) -> MemoryEvents:
    session = open_session(name)
    return memory_events(session.trace(session.hosts[0]))


def theirs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = answer(name, "memory_profile")["memoryProfilePerAllocator"]
    return found


def peer_id(memory: str) -> str:
    """The peer calls a memory without an allocator by its device's number alone."""
    return memory.removeprefix("device ")


@pytest.mark.parametrize("name", NAMES)
def test_memories_peaks_capacity_and_fragmentation_are_the_peer_s(name: str) -> None:
    events, peer = ours(name), theirs(name)
    assert {peer_id(memory) for memory in events.memories} == set(peer)
    for m, memory in enumerate(events.memories):
        mine, summary = memory_peak(events, m), peer[peer_id(memory)]["profileSummary"]
        stats = {key: float(value) for key, value in summary["peakStats"].items()}
        assert mine.used_bytes == stats["stackReservedBytes"] + stats["heapAllocatedBytes"]
        assert (mine.stack_bytes, mine.heap_bytes) == (
            stats["stackReservedBytes"],
            stats["heapAllocatedBytes"],
        )
        assert mine.free_bytes == stats["freeMemoryBytes"]
        assert mine.capacity_bytes == int(summary["memoryCapacity"])
        assert mine.fragmentation == pytest.approx(stats["fragmentation"], rel=1e-6)
        lifetime = int(summary["peakBytesUsageLifetime"])
        if (name, peer_id(memory)) in OTHER_LIFETIME:
            assert mine.lifetime_peak_bytes > lifetime
            assert mine.lifetime_peak_bytes >= mine.used_bytes
        else:
            assert mine.lifetime_peak_bytes == lifetime


@pytest.mark.parametrize("name", NAMES)
def test_events_are_the_peer_s(name: str) -> None:
    """As many as its timeline has, which holds all events below 1,000."""
    events, peer = ours(name), theirs(name)
    for m, memory in enumerate(events.memories):
        mine = memory_peak(events, m)
        kinds = Counter(
            one["activityMetadata"]["memoryActivity"]
            for one in peer[peer_id(memory)]["sampledTimelineSnapshots"]
        )
        assert (mine.n_allocations, mine.n_deallocations) == (kinds["ALLOCATION"], kinds["DEALLOCATION"])


def peer_active(profile: dict[str, Any]) -> tuple[Counter[tuple[str, ...]], int]:
    """(size, requested, operation, region, type, shape) of active allocations, how often; and what is older
    than the capture.
    """
    found: Counter[tuple[str, ...]] = Counter()
    older = 0
    for one in profile["activeAllocations"]:
        if int(one["snapshotIndex"]) < 0:
            special = profile["specialAllocations"][int(one["specialIndex"])]
            older += int(special["allocationBytes"]) if special["tfOpName"] != "stack" else 0
            continue
        facts = profile["memoryProfileSnapshots"][int(one["snapshotIndex"])]["activityMetadata"]
        words = [
            facts[key]
            for key in (
                "allocationBytes",
                "requestedBytes",
                "tfOpName",
                "regionType",
                "dataType",
                "tensorShape",
            )
        ]
        found[tuple("" if word == "(null)" else word for word in words)] += int(one["numOccurrences"])
    return found, older


def our_active(events: MemoryEvents, memory: int) -> tuple[Counter[tuple[str, ...]], int]:
    active = active_allocations(events, memory, memory_peak(events, memory).at)
    found: Counter[tuple[str, ...]] = Counter()
    names = {number: name for name, number in (("INVALID", 0), ("float", 1), ("double", 2), ("half", 19))}
    for i, n in zip(active.example.tolist(), active.n_occurrences.tolist(), strict=True):
        text = [
            events.strings[code] if code >= 0 else ""
            for code in (events.op[i], events.region[i], events.shape[i])
        ]
        dtype = names.get(int(events.dtype[i]), "?")
        found[
            str(events.allocation_bytes[i]), str(events.requested_bytes[i]), text[0], text[1], dtype, text[2]
        ] += n
    return found, active.older_bytes


@pytest.mark.parametrize("name", NAMES)
def test_active_allocations_at_the_peak_are_the_peer_s(name: str) -> None:
    events, peer = ours(name), theirs(name)
    for m, memory in enumerate(events.memories):
        mine, (wanted, older) = our_active(events, m), peer_active(peer[peer_id(memory)])
        equal = mine[1] == older and {k: n for k, n in mine[0].items() if k[4] != "?"} == {
            k: n for k, n in wanted.items() if k in mine[0]
        }
        equal = equal and sum(mine[0].values()) == sum(wanted.values())
        assert equal == ((name, peer_id(memory)) not in OTHER_ACTIVE), memory


def replay(name: str) -> dict[str, list[tuple[int, bool, int, int, int, float]]]:
    """Events of each memory in absolute time, read by protobuf: (time, is allocation, address, size, used,
    fragmentation).
    """
    session = open_session(name)
    with open(session.file(session.hosts[0]).path, "rb") as file:
        space = xspace_class()().FromString(file.read())
    found: dict[str, list[tuple[int, bool, int, int, int, float]]] = {}
    for plane in (plane for plane in space.planes if plane.name == b"/host:CPU"):
        stat_names = {entry.key: entry.value.name.decode() for entry in plane.stat_metadata}
        names = {entry.key: entry.value.name.decode() for entry in plane.event_metadata}
        for line in plane.lines:
            for event in line.events:
                if not names[event.metadata_id].startswith("Memory"):
                    continue
                stats = {stat_names[stat.metadata_id]: _value(stat, stat_names) for stat in event.stats}
                memory = stats.get("allocator_name", stats.get("index_on_host"))
                used = stats.get("bytes_reserved", 0) + stats["bytes_allocated"]
                row = (stats["addr"], stats.get("allocation_bytes", 0), used, float(stats["fragmentation"]))
                when = line.timestamp_ns * 1000 + event.offset_ps
                found.setdefault(str(memory), []).append(
                    (when, names[event.metadata_id] == "MemoryAllocation", *row)
                )
    return {memory: sorted(rows, key=lambda row: row[0]) for memory, rows in found.items()}


def _value(stat: Any, names: dict[int, str]) -> Any:
    kind = stat.WhichOneof("value")
    value = getattr(stat, kind) if kind else 0
    return names[value] if kind == "ref_value" else value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("name", NAMES)
def test_peak_active_allocations_and_fragmentation_are_those_of_a_replay(name: str) -> None:
    events, replayed = ours(name), replay(name)
    assert {peer_id(memory) for memory in events.memories} == set(replayed)
    for m, memory in enumerate(events.memories):
        history = replayed[peer_id(memory)]
        largest = max(range(len(history)), key=lambda i: (history[i][4], i))
        live: dict[int, int] = {}
        for _, is_allocation, address, size, _, _ in history[: largest + 1]:
            if is_allocation:
                live[address] = size
            else:
                live.pop(address, None)
        mine = memory_peak(events, m)
        active = active_allocations(events, m, mine.at)
        assert mine.used_bytes == history[largest][4]
        assert (
            mine.start_ps + 1000 * open_session(name).trace(open_session(name).hosts[0]).info.start_ns
            == history[largest][0]
        )
        assert mine.fragmentation == pytest.approx(history[largest][5])
        assert int(active.n_occurrences.sum()) == len(live)
        assert int(active.total_bytes.sum()) == sum(live.values())
