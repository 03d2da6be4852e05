"""Transfers to and from the host's memory: starts and dones matched in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.events.host_offload import host_transfers, matched, names_host_memory
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build

HOST = "f32[2]{0:S(5)}"
START5, DONE5 = f"%copy-start.5 = {HOST} copy-start(%p)", f"%copy-done.5 = {HOST} copy-done(%q)"
START_SLICE = f"%dynamic-slice-start.12 = {HOST} async-start(%p)"
DONE_SLICE = f"%dynamic-slice-done.12 = {HOST} async-done(%p)"
PLAIN = "%copy-start.6 = f32[2] copy-start(%p)"
FUSION = f"%fusion.5 = {HOST} fusion(%p)"


def with_display_names(trace: Trace) -> Trace:
    """The trace with the part before the equals sign as the display name, as XLA writes it."""
    names = [trace.strings[i].partition(" = ")[0].lstrip("%") for i in trace.metadata["name"].tolist()]
    n = len(trace.strings)
    strings = Strings.of([trace.strings.bytes_at(i) for i in range(n)] + [name.encode() for name in names])
    columns = {name: trace.metadata[name] for name in ("plane", "id", "name")}
    metadata = Table(
        schema.METADATA, {**columns, "display_name": np.arange(n, n + len(names), dtype=np.int32)}
    )
    return replace(trace, strings=strings, metadata=metadata)


def transfers_of(events: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """(name, begin, end) of the transfers of the second of two cores."""
    drawn = [DrawnEvent(name, start, duration) for name, start, duration in events]
    other = [DrawnEvent(START5, 1, 1), DrawnEvent(DONE5, 8, 1)]
    trace = with_display_names(
        build(
            [
                DrawnPlane("/device:TPU:0", {"XLA Ops": other}),
                DrawnPlane("/device:TPU:1", {"Steps": other, "XLA Ops": drawn}),
            ]
        )
    )
    found = host_transfers(trace, 1)
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    assert start[found.start].tolist() == found.start_ps.tolist()
    assert (start + duration)[found.done].tolist() == found.end_ps.tolist()
    names = [found.names[code] for code in found.name.tolist()]
    return list(zip(names, found.start_ps.tolist(), found.end_ps.tolist(), strict=True))


def test_spans_reach_from_the_start_to_the_end_of_the_done() -> None:
    """Two copies in flight at once, a slice begun with the second one and longer, and operations that
    transfer nothing.
    """
    events = [
        (START5, 10, 2),
        (FUSION, 12, 1),
        (START5, 20, 2),
        (START_SLICE, 20, 1),
        (PLAIN, 25, 1),
        (DONE5, 30, 5),
        (DONE5, 40, 4),
        (DONE_SLICE, 50, 3),
        (START5, 60, 2),
    ]
    assert transfers_of(sorted(events, key=lambda event: (event[1], -event[2]))) == [
        ("offload-copy.5", 10, 35),
        ("offload-dynamic-slice.12", 20, 53),
        ("offload-copy.5", 20, 44),
    ]


def test_a_done_without_a_start_gives_no_transfer() -> None:
    events = [(DONE5, 5, 2), (START5, 10, 0), (DONE5, 10, 3), (DONE5, 20, 3), (START5, 30, 1), (DONE5, 40, 1)]
    assert transfers_of(sorted(events, key=lambda event: (event[1], -event[2]))) == [
        ("offload-copy.5", 10, 13),
        ("offload-copy.5", 30, 41),
    ]
    assert transfers_of([(FUSION, 1, 1), (PLAIN, 2, 1)]) == []


def test_a_transfer_without_a_number_has_number_0() -> None:
    trace = build(
        [
            DrawnPlane(
                "/device:TPU:0",
                {"XLA Ops": [DrawnEvent("copy-start S(5)", 1, 1), DrawnEvent("copy-done S(5)", 4, 2)]},
            )
        ]
    )
    assert host_transfers(trace, 0).names == ("offload-copy.0",)


def test_names_of_the_host_s_memory() -> None:
    trace = build(
        [
            DrawnPlane(
                "/host:CPU",
                {"main": [DrawnEvent(n, i, 1) for i, n in enumerate(("a", "S(5)", "S(6)", "xS(5)y"))]},
            )
        ]
    )
    named = {trace.strings[i] for i in np.flatnonzero(names_host_memory(trace)).tolist()}
    assert named == {"S(5)", "xS(5)y"}


def plain_matches(is_start: list[bool]) -> list[tuple[int, int]]:
    """First come, first served; a done without an open start is dropped."""
    waiting: list[int] = []
    pairs = []
    for i, starts in enumerate(is_start):
        if starts:
            waiting.append(i)
        elif waiting:
            pairs.append((waiting.pop(0), i))
    return pairs


def test_random_sequences_of_starts_and_dones() -> None:
    draw = np.random.default_rng(7)
    for n in range(25):
        is_start = draw.random(n) < 0.5
        start, done, code = matched(np.arange(100, 100 + n), is_start, 4)
        pairs = [(a - 100, b - 100) for a, b in zip(start.tolist(), done.tolist(), strict=True)]
        assert pairs == plain_matches(is_start.tolist())
        assert code.tolist() == [4] * len(pairs)
