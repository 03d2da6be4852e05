"""The JSON of the pod viewer, the op profile and the memory profile: objects within objects, as protobuf's
JSON has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tb_tpuprof.ingest.pages.page import (
    MOST_ROWS,
    PS_PER_US,
    SavedPage,
    columns_of,
    number_of,
    text_of,
    time_of,
)

_CORE_TIMES = {
    "highFlopsComputeUs": "compute_ps",
    "lowFlopsComputeUs": "low_flops_ps",
    "hostInfeedDurationUs": "infeed_ps",
    "hostOutfeedDurationUs": "outfeed_ps",
    "allReduceComputeDurationUs": "all_reduce_ps",
    "allReduceSyncDurationUs": "synchronization_ps",
    "crsDurationUs": "all_reduce_ps",  # until 2019
    "sendDurationUs": "send_ps",
    "recvDurationUs": "receive_ps",
}
_MOST_DEPTH = 64
_TREES = (("byProgram", "by program"), ("byProgramExcludeIdle", "by program"), ("byCategory", "by category"))


def pod_viewer(page: str, content: Any) -> SavedPage:
    """The cores' steps, the collectives and the links between cores."""
    sequence = _object(_object(content).get("podStatsSequence"))
    steps = [step for step in _list(sequence.get("podStatsMap")) if isinstance(step, dict)]
    tables: dict[str, Any] = {}
    for name, read in (("cores", _cores), ("collectives", _collectives), ("links", _links)):
        rows = [row for step in steps for row in read(step)]
        if rows:
            tables[name] = columns_of(rows, list(rows[0]))
    facts = [
        (name, text)
        for name, value in _leaves("", _object(_object(content).get("runEnvironment")))
        if (text := text_of(value))
    ]
    return SavedPage(page, tuple(facts), tables=tables)


def _cores(step: Mapping[str, Any]) -> Iterator[dict[str, float | str]]:
    replica = _object(step.get("coreIdToReplicaIdMap"))
    for core, value in list(_object(step.get("podStatsPerCore")).items())[:MOST_ROWS]:
        facts = _object(value)
        row: dict[str, float | str] = {
            "step": text_of(facts.get("stepNum", step.get("stepNum"))),
            "core": text_of(core),
            "core_host": text_of(facts.get("hostName")),
            "chip": text_of(facts.get("chipId")),
            "node": text_of(facts.get("nodeId")),
            "replica": text_of(replica.get(core)),
            "bottleneck": text_of(facts.get("bottleneck")),
            "total_ps": time_of(facts.get("totalDurationUs"), PS_PER_US),
        }
        for name, title in _CORE_TIMES.items():
            if title not in row or name in facts:
                row[title] = time_of(facts.get(name), PS_PER_US)
        yield row


def _collectives(step: Mapping[str, Any]) -> Iterator[dict[str, float | str]]:
    for value in _list(step.get("allReduceOpDb"))[:MOST_ROWS]:
        facts = _object(value)
        yield {
            "step": text_of(step.get("stepNum")),
            "operation": text_of(facts.get("name")),
            "occurrences": number_of(facts.get("occurrences")),
            "duration_ps": time_of(facts.get("durationUs"), PS_PER_US),
            "data_bytes": number_of(facts.get("dataSize")),
            "description": text_of(facts.get("description"))[:500],
        }


def _links(step: Mapping[str, Any]) -> Iterator[dict[str, float | str]]:
    for value in _list(step.get("channelDb"))[:MOST_ROWS]:
        facts = _object(value)
        yield {
            "step": text_of(step.get("stepNum")),
            "channel": text_of(facts.get("channelId")),
            "from_core": _cores_of(facts, "srcCoreId"),
            "to_core": _cores_of(facts, "dstCoreId"),
            "occurrences": number_of(facts.get("occurrences")),
            "duration_ps": time_of(facts.get("durationUs"), PS_PER_US),
            "send_delay_ps": time_of(facts.get("sendDelayUs"), PS_PER_US),
            "data_bytes": number_of(facts.get("dataSize")),
            "operations": ", ".join(text_of(name) for name in _list(facts.get("hloNames"))[:16]),
        }


def _cores_of(facts: Mapping[str, Any], name: str) -> str:
    """One core, or in later versions several."""
    several = _list(facts.get(f"{name}s"))[:16]
    return ", ".join(text_of(core) for core in several) if several else text_of(facts.get(name))


def op_profile(page: str, content: Any) -> SavedPage:
    """The first tree that the page has, as rows with their depth."""
    trees = _object(content)
    for name, title in _TREES:
        rows = list(_nodes(_object(trees.get(name)))) if trees.get(name) else []
        if rows:
            facts = [("tree", title), ("device type", text_of(trees.get("deviceType")))]
            return SavedPage(
                page,
                tuple(fact for fact in facts if fact[1]),
                tables={"op_profile": columns_of(rows, list(rows[0]))},
            )
    return SavedPage(page)


def _nodes(root: Mapping[str, Any]) -> Iterator[dict[str, float | str]]:
    """The nodes of a tree, each before its children; shares are of the root's time."""
    whole = _time(root)
    waiting: list[tuple[int, Any]] = [(0, root)]
    n = 0
    while waiting and n < MOST_ROWS:
        depth, value = waiting.pop()
        node = _object(value)
        metrics, xla = _object(node.get("metrics")), _object(node.get("xla"))
        n += 1
        yield {
            "depth": float(depth),
            "name": text_of(node.get("name")) or "(no name)",
            "category": text_of(xla.get("category")),
            "framework_op": text_of(xla.get("provenance")),
            "time_fraction": _time(node) / whole if whole else float("nan"),
            "flops_fraction": number_of(metrics.get("flops")),
            "expression": text_of(xla.get("expression"))[:500],
        }
        if depth < _MOST_DEPTH:
            waiting += [(depth + 1, child) for child in reversed(_list(node.get("children")))]


def memory_profile(page: str, content: Any) -> SavedPage:
    """Each memory's peak, and the allocations at that time."""
    memories = _object(_object(content).get("memoryProfilePerAllocator"))
    rows = [_memory(name, _object(value)) for name, value in list(memories.items())[:1000]]
    allocations = [
        row for name, value in list(memories.items())[:1000] for row in _allocations(name, _object(value))
    ]
    tables: dict[str, Any] = {}
    for title, listed in (("memories", rows), ("allocations", allocations)):
        if listed:
            tables[title] = columns_of(listed, list(listed[0]))
    return SavedPage(page, tables=tables)


def _memory(name: str, value: Mapping[str, Any]) -> dict[str, float | str]:
    summary = _object(value.get("profileSummary"))
    peak = _object(summary.get("peakStats"))
    return {
        "memory": text_of(name) or "(no name)",
        "lifetime_peak_bytes": number_of(summary.get("peakBytesUsageLifetime")),
        "peak_bytes": number_of(peak.get("peakBytesInUse")),
        "peak_time_ps": time_of(summary.get("peakStatsTimePs"), 1.0),
        "heap_bytes": number_of(peak.get("heapAllocatedBytes")),
        "stack_bytes": number_of(peak.get("stackReservedBytes")),
        "free_bytes": number_of(peak.get("freeMemoryBytes")),
        "capacity_bytes": number_of(summary.get("memoryCapacity")),
        "fragmentation": number_of(peak.get("fragmentation")),
        "snapshots": float(len(_list(value.get("memoryProfileSnapshots")))),
    }


def _allocations(name: str, value: Mapping[str, Any]) -> Iterator[dict[str, float | str]]:
    """What was allocated at the peak: an entry names a snapshot, or a special allocation, by its index."""
    snapshots, special = _list(value.get("memoryProfileSnapshots")), _list(value.get("specialAllocations"))
    for entry in _list(value.get("activeAllocations"))[:MOST_ROWS]:
        facts = _object(entry)
        index = number_of(facts.get("snapshotIndex", 0))
        if index < 0:
            activity = _object(_item(special, number_of(facts.get("specialIndex", 0))))
        else:
            activity = _object(_object(_item(snapshots, index)).get("activityMetadata"))
        yield {
            "memory": text_of(name) or "(no name)",
            "operation": text_of(activity.get("tfOpName")),
            "occurrences": number_of(facts.get("numOccurrences", 1)),
            "allocated_bytes": number_of(activity.get("allocationBytes")),
            "requested_bytes": number_of(activity.get("requestedBytes")),
            "region": text_of(activity.get("regionType")),
            "data_type": text_of(activity.get("dataType")),
            "shape": text_of(activity.get("tensorShape")),
        }


def _item(listed: list[Any], index: float) -> Any:
    """The entry of a list, None if it has none there."""
    return listed[int(index)] if 0 <= index < len(listed) else None


def _time(node: Mapping[str, Any]) -> float:
    """A node's time, in the unit that its profile has: a share of the whole until 2022, then ps."""
    metrics = _object(node.get("metrics"))
    return number_of(metrics["rawTime"]) if "rawTime" in metrics else number_of(metrics.get("time"))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(path, value) of what is in an object and in the objects within it."""
    if isinstance(value, dict) and name.count(" ") < 4:
        for key, inner in list(value.items())[:100]:
            yield from _leaves(f"{name} {key}".strip(), inner)
    elif not isinstance(value, (dict, list)):
        yield name, value


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
