"""memory_snapshot: the memory in use when a snapshot was saved, who allocated it, what has grown since
another one, and, of PyTorch, the allocator's history: the peak, what was not freed, and what failed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from tb_tpuprof.analysis.memory.heap import (
    Totals,
    file_name,
    frame_text,
    functions,
    order_of_rows,
    place_of_stack,
    places,
    stack_text,
)
from tb_tpuprof.analysis.memory.heap_growth import Growth, growth
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.ingest.storage.run_info import MEMORY
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Params
from tb_tpuprof.tools.memory_snapshot import tables as declared
from tb_tpuprof.tools.memory_snapshot.history import History, history_of
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Table, Verdict
from tb_tpuprof.tools.spec import Number, fill_scalars, known_texts
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.trace.heap import Heap
from tb_tpuprof.units import format_bytes, format_fraction

_REASON = "the run contains no memory snapshot."
_REMEDY = (
    "Save one below the log directory while the memory is in use. JAX: "
    "`jax.profiler.save_device_memory_profile(logdir + '/memory.prof')`. PyTorch: "
    "`torch.cuda.memory._record_memory_history()`, later "
    "`torch.cuda.memory._dump_snapshot(logdir + '/step_snapshot.pickle')`."
)
_NO_STACKS = (
    "JAX records the stack of each array by itself. PyTorch does after "
    "`torch.cuda.memory._record_memory_history()`, which must run before the allocations."
)
_MOST_COMPARISONS = 3
_MOSTLY_FREE = 0.5
_LARGE_BYTES = 2**28
_WHEN_SAVED = "when saved"
_ON_ALL = f"{_WHEN_SAVED}, on all devices"


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """One snapshot."""
    heap = _heap(session, hosts[0])
    by_place, all_bytes = places(heap), int(heap.size_bytes.sum())
    shown: dict[str, Table] = {}
    numbers: dict[str, Number | float | None] = {
        "used_bytes": Number(all_bytes, _WHEN_SAVED if sum(map(bool, heap.devices)) < 2 else _ON_ALL),
        "n_blocks": int(heap.n_blocks.sum()),
        "n_places": int((by_place.frame >= 0).sum()),
        "unattributed_bytes": int(by_place.size_bytes[by_place.frame < 0].sum()),
    }
    changes = None
    if "before" in params:
        other = _other_host(session, hosts[0], str(params["before"]))
        changes = growth(_heap(session, other), heap)
        shown["growth"] = _growth_table(changes, other)
        difference = int(changes.after_bytes.sum() - changes.before_bytes.sum())
        numbers["growth_bytes"] = Number(difference, f"since the snapshot {other}")
    recorded = history_of(heap.recording, params) if heap.recording else None
    if recorded:
        shown |= recorded.tables
        numbers |= recorded.numbers
    shown["places"] = _places_table(heap, by_place, all_bytes)
    shown["kinds"] = _kinds_table(heap, all_bytes)
    if heap.pools:
        shown["pools"] = _pools_table(heap)
        numbers |= _pool_numbers(heap)
    shown["functions"] = _functions_table(heap, all_bytes)
    shown["stacks"] = _stacks_table(heap, all_bytes)
    scalars = fill_scalars(declared.SCALARS, numbers)
    verdict = _verdict(heap, by_place, all_bytes, changes)
    verdict = replace(verdict, next=_next(session, hosts[0], str(params.get("before", ""))))
    diagnostics = _diagnostics(by_place, all_bytes)
    if recorded:
        verdict = _with_history(verdict, recorded)
        diagnostics = (*recorded.diagnostics, *diagnostics)
    return Payload(TOOL.name, session.run, hosts, shown, scalars, verdict, diagnostics)


def _with_history(verdict: Verdict, recorded: History) -> Verdict:
    """What failed comes first, then what grows."""
    headlines = [text for text in (recorded.failure, recorded.leak) if text]
    if not headlines:
        return replace(verdict, details=(*recorded.details, *verdict.details))
    details = (*headlines[1:], *recorded.details, *verdict.details, verdict.text)
    return replace(verdict, level="bad" if recorded.failure else "warn", text=headlines[0], details=details)


def _heap(session: Session, host: str) -> Heap:
    heap = session.trace(host).heap if available(session) else None
    if heap is None:
        raise ToolUnavailable(TOOL.name, _REASON, _REMEDY)
    return heap


def _other_host(session: Session, host: str, name: str) -> str:
    others = [other for other in session.hosts if other != host]
    if name not in others:
        allowed = ", ".join(others[:20]) or "none: the run has no other snapshot"
        raise BadParameter("before", name, f"another snapshot of the run: {allowed}")
    return name


def _next(session: Session, host: str, compared: str) -> tuple[NextStep, ...]:
    """Comparisons with the snapshots that were not saved later, the latest first; without any, of the latest
    one with this one. Copies of files may have equal times.
    """
    saved_ns = {other: session.file(other).mtime_ns for other in session.hosts}
    earlier = [other for other in session.hosts if other != host and saved_ns[other] <= saved_ns[host]]
    earlier.sort(key=lambda other: -saved_ns[other])
    last = max(session.hosts, key=lambda other: saved_ns[other])
    if not earlier and not compared and last != host:
        text = f"See what has grown from it to the snapshot `{last}`"
        return (NextStep(text, TOOL.name, {"hosts": last, "before": host}),)
    steps = [
        NextStep(f"See what has grown since the snapshot `{other}`", TOOL.name, {"before": other})
        for other in earlier[:_MOST_COMPARISONS]
        if other != compared
    ]
    return (*steps, *((NextStep("See this snapshot alone", TOOL.name),) if compared else ()))


def _places_table(heap: Heap, totals: Totals, all_bytes: int) -> Table:
    rows = slice(declared.N_ROWS)
    return declared.PLACES.fill(
        {
            "place": [frame_text(heap.stacks, frame) for frame in totals.frame[rows].tolist()],
            "size_bytes": totals.size_bytes[rows],
            "fraction": totals.size_bytes[rows] / (all_bytes or 1),
            "n_blocks": totals.n_blocks[rows],
        },
        _note(len(totals)),
    )


def _kinds_table(heap: Heap, all_bytes: int) -> Table:
    n_kinds = max(1, len(heap.kinds))
    pair, inverse = np.unique(heap.device.astype(np.int64) * n_kinds + heap.kind, return_inverse=True)
    n_blocks, size = np.zeros(len(pair), np.int64), np.zeros(len(pair), np.int64)
    np.add.at(n_blocks, inverse, heap.n_blocks)
    np.add.at(size, inverse, heap.size_bytes)
    order = np.argsort(-size, kind="stable")
    devices = [heap.devices[i] for i in (pair[order] // n_kinds).tolist()]
    return declared.KINDS.fill(
        {
            "device": known_texts(devices),
            "kind": known_texts([heap.kinds[i] for i in (pair[order] % n_kinds).tolist()]),
            "size_bytes": size[order],
            "fraction": size[order] / (all_bytes or 1),
            "n_blocks": n_blocks[order],
        }
    )


def _pools_table(heap: Heap) -> Table:
    pools = heap.pools
    return declared.POOLS.fill(
        {
            "device": [pool.device for pool in pools],
            "reserved_bytes": np.array([pool.reserved_bytes for pool in pools], np.int64),
            "used_bytes": np.array([pool.used_bytes for pool in pools], np.int64),
            "free_bytes": np.array([pool.reserved_bytes - pool.used_bytes for pool in pools], np.int64),
            "largest_free_bytes": np.array([pool.largest_free_bytes for pool in pools], np.int64),
            "rounding_bytes": np.array([pool.used_bytes - pool.requested_bytes for pool in pools], np.int64),
        }
    )


def _pool_numbers(heap: Heap) -> dict[str, Number | float | None]:
    reserved, used, requested = (
        sum(sizes)
        for sizes in zip(
            *((pool.reserved_bytes, pool.used_bytes, pool.requested_bytes) for pool in heap.pools),
            strict=True,
        )
    )
    share = f"{format_fraction((reserved - used) / reserved)} of it" if reserved else ""
    when = _WHEN_SAVED if len(heap.pools) < 2 else _ON_ALL
    return {
        "reserved_bytes": Number(reserved, f"{when}, by {heap.maker}'s allocator" if heap.maker else when),
        "free_bytes": Number(reserved - used, share),
        "rounding_bytes": used - requested,
    }


def _growth_table(changes: Growth, other: str) -> Table:
    rows = slice(declared.N_ROWS)
    note = _note(len(changes.place)) or f"compared with {other}"
    return declared.GROWTH.fill(
        {
            "place": changes.place[rows],
            "before_bytes": changes.before_bytes[rows],
            "after_bytes": changes.after_bytes[rows],
            "growth_bytes": (changes.after_bytes - changes.before_bytes)[rows],
            "growth_n_blocks": changes.n_more_blocks[rows],
        },
        note,
    )


def _functions_table(heap: Heap, all_bytes: int) -> Table:
    totals, rows, stacks = functions(heap), slice(declared.N_ROWS), heap.stacks
    frames = totals.frame[rows].tolist()
    return declared.FUNCTIONS.fill(
        {
            "function": [stacks.function[frame] or "(unknown)" for frame in frames],
            "file": known_texts([file_name(stacks, frame) for frame in frames]),
            "size_bytes": totals.size_bytes[rows],
            "own_bytes": totals.own_bytes[rows],
            "n_blocks": totals.n_blocks[rows],
            "fraction": totals.size_bytes[rows] / (all_bytes or 1),
        },
        _note(len(totals)),
    )


def _stacks_table(heap: Heap, all_bytes: int) -> Table:
    order = order_of_rows(heap)
    rows, place = order[: declared.N_ROWS], place_of_stack(heap.stacks)
    return declared.STACKS.fill(
        {
            "device": known_texts([heap.devices[i] for i in heap.device[rows].tolist()]),
            "kind": known_texts([heap.kinds[i] for i in heap.kind[rows].tolist()]),
            "size_bytes": heap.size_bytes[rows],
            "fraction": heap.size_bytes[rows] / (all_bytes or 1),
            "n_blocks": heap.n_blocks[rows],
            "place": [frame_text(heap.stacks, int(place[stack])) for stack in heap.stack[rows].tolist()],
            "stack": [stack_text(heap.stacks, stack) for stack in heap.stack[rows].tolist()],
        },
        _note(len(order)),
    )


def _note(n_rows: int) -> str:
    return f"the first {declared.N_ROWS:,} of {n_rows:,}" if n_rows > declared.N_ROWS else ""


def _verdict(heap: Heap, totals: Totals, all_bytes: int, changes: Growth | None) -> Verdict:
    """What has grown most, else who allocated most; and pools that are mostly unused."""
    details = _held_details(heap)
    level: Literal["warn", "unknown"] = "warn" if details else "unknown"
    if changes is not None:
        return Verdict(level, _growth_sentence(changes), "", details)
    if not all_bytes:
        return Verdict(level, "No memory was in use when the snapshot was saved.", "", details)
    blocks = _blocks(int(heap.n_blocks.sum()))
    text = f"{format_bytes(all_bytes)} was in use in {blocks} when the snapshot was saved"
    named = np.flatnonzero(totals.frame >= 0)
    if len(named):
        most = int(named[0])
        place = frame_text(heap.stacks, int(totals.frame[most]))
        share = format_fraction(int(totals.size_bytes[most]) / all_bytes)
        return Verdict(level, f"{text}: {share} of it was allocated at `{place}`.", "", details)
    return Verdict(level, f"{text}; it does not record who allocated it.", "", details)


def _growth_sentence(changes: Growth) -> str:
    difference = int(changes.after_bytes.sum() - changes.before_bytes.sum())
    if not len(changes.place):
        return "Nothing has changed since the other snapshot: each place has the same memory in use."
    verb = "grew" if difference > 0 else "shrank"
    text = f"Memory in use {verb} by {format_bytes(abs(difference))} since the other snapshot"
    if not difference:
        text = "As much memory was in use as in the other snapshot"
    most = int(changes.after_bytes[0] - changes.before_bytes[0])
    return f"{text}; `{changes.place[0]}` grew most, by {format_bytes(most)}." if most > 0 else f"{text}."


def _held_details(heap: Heap) -> tuple[str, ...]:
    """Pools that are mostly free, where that is much."""
    details = []
    for pool in heap.pools:
        free = pool.reserved_bytes - pool.used_bytes
        if free >= _LARGE_BYTES and free > _MOSTLY_FREE * pool.reserved_bytes:
            details.append(
                f"{pool.device}: {format_bytes(free)} of the {format_bytes(pool.reserved_bytes)} held "
                f"was not in use; the largest free block had {format_bytes(pool.largest_free_bytes)}. "
                "`torch.cuda.empty_cache()` returns unused segments; expandable segments "
                "(`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`) reduce fragmentation."
            )
    return tuple(details)


def _blocks(n: int) -> str:
    return f"{n:,} block{'' if n == 1 else 's'}"


def _diagnostics(totals: Totals, all_bytes: int) -> tuple[Diagnostic, ...]:
    missing = int(totals.size_bytes[totals.frame < 0].sum())
    if not missing:
        return ()
    share = format_fraction(missing / all_bytes)
    text = f"{format_bytes(missing)} ({share}) of the memory in use has no recorded stack."
    return (Diagnostic("info", text, _NO_STACKS),)


def available(session: Session) -> Availability:
    """Whether the run consists of snapshots; nothing is read."""
    is_there = session.info.state == "memory"
    return Availability() if is_there else Availability(_REASON, _REMEDY, "no snapshot")


TOOL = Tool(
    name="memory_snapshot",
    title="Memory snapshot",
    group="Memory",
    summary="Memory in use at one moment and before it, who allocated it, and what has grown since then",
    view=view,
    available=available,
    params=declared.PARAMS,
    tables=declared.TABLES,
    scalars=declared.SCALARS,
    tiles=declared.TILES,
    hosts="one",
    needs_trace=False,
    only_for=MEMORY,
)
