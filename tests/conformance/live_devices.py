"""The live comparison of kernels and memories: our payload beside the peer's answer, field by field."""

from __future__ import annotations

from typing import Any, NamedTuple

from tb_tpuprof.tools.payload import Payload, Table
from tests.conformance.peer import rows

Row = dict[str, Any]
PS_PER_US = 1_000_000


class Field(NamedTuple):
    """What we and the peer say of one field."""

    name: str
    ours: float | str | None
    theirs: float | str | None


def table(found: Table) -> list[Row]:
    """Rows of one of our tables; unknown text is empty."""
    columns = {
        c.name: [c.strings[i] if i >= 0 else "" for i in c.values.tolist()]
        if c.strings is not None
        else c.values.tolist()
        for c in found.columns
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _number(value: float) -> float:
    return 0.0 if value != value else float(value)


def kernels(payload: Payload, answer: Any) -> list[Field]:
    """Every row: kernel, operation, launch, times, flags."""
    mine = {
        (r["kernel"], r["op"].replace("(no operation)", ""), r["grid"]): r
        for r in table(payload.tables["kernels"])
    }
    peer: dict[Any, list[Row]] = {}
    for row in rows(answer):
        peer.setdefault((row["kernel_name"], row["op_name"], row["grid_dim"]), []).append(row)
    found = [Field("kernels", "\n".join(sorted(map(str, mine))), "\n".join(sorted(map(str, peer))))]
    n_peer = sum(len(same) for same in peer.values())
    found.append(Field("number of rows", float(len(mine)), float(n_peer)))
    for key in sorted(set(mine) & set(peer)):
        ours, theirs = mine[key], peer[key]
        name = f"{key[0][:40]} {key[1]}"
        found += [
            Field(
                f"{name}: occurrences",
                float(ours["n_occurrences"]),
                sum(row["occurrences"] for row in theirs),
            ),
            Field(
                f"{name}: total",
                ours["total_ps"] / PS_PER_US,
                sum(row["total_duration_us"] for row in theirs),
            ),
            Field(
                f"{name}: minimum", ours["min_ps"] / PS_PER_US, min(row["min_duration_us"] for row in theirs)
            ),
            Field(
                f"{name}: maximum", ours["max_ps"] / PS_PER_US, max(row["max_duration_us"] for row in theirs)
            ),
            Field(f"{name}: registers", _number(ours["n_registers"]), theirs[0]["registers_per_thread"]),
            Field(f"{name}: shared memory", _number(ours["shared_bytes"]), theirs[0]["shmem_bytes"]),
            Field(f"{name}: block", ours["block"], theirs[0]["block_dim"]),
            Field(
                f"{name}: occupancy", 100 * _number(ours["occupancy_fraction"]), theirs[0]["occupancy_pct"]
            ),
            Field(
                f"{name}: eligible",
                str(ours["is_tensor_core_eligible"]),
                str(theirs[0]["is_op_tensor_core_eligible"] or theirs[0]["is_kernel_using_tensor_core"]),
            ),
            Field(
                f"{name}: tensor cores",
                str(ours["uses_tensor_cores"]),
                str(theirs[0]["is_kernel_using_tensor_core"]),
            ),
        ]
    return found


def memory(payloads: dict[str, Payload], answer: Any) -> list[Field]:
    """Summary, active allocations and history of every memory; `payloads` by the peer's name of
    the memory.
    """
    peer = answer["memoryProfilePerAllocator"]
    found = [Field("memories", ", ".join(sorted(payloads)), ", ".join(sorted(peer)))]
    for name in sorted(set(payloads) & set(peer)):
        payload, profile = payloads[name], peer[name]
        summary, stats = profile["profileSummary"], profile["profileSummary"]["peakStats"]
        for ours, theirs in (
            ("stack_bytes", stats["stackReservedBytes"]),
            ("heap_bytes", stats["heapAllocatedBytes"]),
            ("free_bytes", stats["freeMemoryBytes"]),
            ("fragmentation_fraction", stats["fragmentation"]),
            ("capacity_bytes", summary["memoryCapacity"]),
            ("lifetime_peak_bytes", summary["peakBytesUsageLifetime"]),
            ("peak_ps", summary["peakStatsTimePs"]),
        ):
            found.append(Field(f"{name}: {ours}", float(payload.scalars[ours].value or 0), float(theirs)))
        history = profile["sampledTimelineSnapshots"]
        found.append(Field(f"{name}: events", float(payload.tables["timeline"].n_rows), float(len(history))))
        levels = [row["heap_bytes"] for row in table(payload.tables["timeline"])]
        theirs_levels = [int(one["aggregationStats"]["heapAllocatedBytes"]) for one in history]
        found.append(Field(f"{name}: levels", str(levels), str(theirs_levels)))
        mine = [
            (r["op"], int(r["allocation_bytes"]), int(r["n_occurrences"]))
            for r in table(payload.tables["active"])
            if r["event"] == r["event"]
        ]
        found.append(Field(f"{name}: active allocations", str(sorted(mine)), str(sorted(_active(profile)))))
    return found


def _active(profile: Row) -> list[tuple[str, int, int]]:
    result = []
    for one in profile["activeAllocations"]:
        if int(one["snapshotIndex"]) >= 0:
            facts = profile["memoryProfileSnapshots"][int(one["snapshotIndex"])]["activityMetadata"]
            result.append(
                (
                    facts["tfOpName"].replace("(null)", ""),
                    int(facts["allocationBytes"]),
                    int(one["numOccurrences"]),
                )
            )
    return result
