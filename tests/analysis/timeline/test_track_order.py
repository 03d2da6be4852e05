"""The order of tracks: sections of devices by number, then hosts' threads, then the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.timeline.tracks import (
    _host_rank,
    device_kind,
    host_kind,
    natural,
    section_of,
    tracks,
)
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table, table_from_rows
from tests.builders import DrawnEvent, DrawnPlane, build


def test_sections_are_ordered_devices_first_then_host_threads() -> None:
    planes = [
        "/host:metadata",
        "/host:CPU",
        "/device:CUSTOM:",
        "/device:TPU:10",
        "/device:TPU:2",
        "/device:GPU:0",
    ]
    ordered = sorted(planes, key=lambda plane: section_of(plane)[1:])
    assert ordered[:3] == ["/device:GPU:0", "/device:TPU:2", "/device:TPU:10"]
    assert ordered.index("/device:CUSTOM:") == 3
    assert section_of("")[0] == "(unnamed plane)"
    assert section_of("/device:GPU:0") == ("GPU:0", 0, 0)
    far = section_of("/device:GPU:999999999999")[2]
    assert section_of("/device:CUSTOM:")[2] > far == 999_999_999


def test_threads_of_a_host_are_ordered_by_what_they_are() -> None:
    names = ["worker/12", "named", "main/7", "python3", "main"]
    ranks = {name: _host_rank(name, host_kind(name)) for name in names}
    assert ranks == {"python3": 0, "main": 1, "main/7": 1, "named": 2, "worker/12": 4}
    assert _host_rank("python3", "async") == 5
    assert _host_rank("main", "counter") == 6


@pytest.mark.parametrize(
    ("first", "second"), [("worker 2", "worker 10"), ("a9b10", "a10b9"), ("x", "x1"), ("B1", "b2")]
)
def test_numbers_in_names_sort_by_value(first: str, second: str) -> None:
    assert natural(first) < natural(second)


@pytest.mark.parametrize(
    ("plane", "section"),
    [
        ("/device:TPU:3", ("TPU:3", 0, 3)),
        ("/device:TPU:3 SparseCore 1", ("TPU:3 SparseCore 1", 0, 3)),
        ("/device:CUSTOM:GPU:12", ("CUSTOM:GPU:12", 0, 12)),
        ("/device:CUSTOM:", ("CUSTOM:", 0, 10**9)),
        ("/device:1234567890123", ("1234567890123", 0, 10**9)),
        ("/device:GPU:1234567890123", ("GPU:1234567890123", 0, 123_456_789)),
        ("#Chip4 TC", ("Chip4 TC", 0, 4)),
        ("#Chip", ("Chip", 0, 10**9)),
        ("#Chip1234567890123", ("Chip1234567890123", 0, 123_456_789)),
        ("/host:CPU", ("Host threads", 1, 0)),
        ("/host:CPU 7", ("Host threads 7", 1, 0)),
        ("/host:metadata", ("/host:metadata", 2, 0)),
        ("", ("(unnamed plane)", 2, 0)),
    ],
)
def test_the_section_of_a_plane(plane: str, section: tuple[str, int, int]) -> None:
    assert section_of(plane) == section


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [("a 2 b", "a 2 c", "a 10 b"), ("", "1", "1a"), ("x" + "9" * 17, "x" + "9" * 18, "y0")],
)
def test_names_sort_by_words_and_numbers(first: str, second: str, third: str) -> None:
    assert sorted((third, second, first), key=natural) == [first, second, third]


def test_kinds_of_lines() -> None:
    names = (
        "Steps",
        "Stream #3",
        "XLA Ops",
        "XLA Ops - from Stream #1",
        "Async XLA Ops",
        "Exposed communication",
        "steps",
        "",
        "XLA Modules",
    )
    kinds = ["steps", "stream", "hlo_ops", "hlo_ops", "async", "exposed", "other", "other", "modules"]
    assert [device_kind(name) for name in names] == kinds
    assert [host_kind(name) for name in ("python3", "tf_data_iterator", "my python", "")] == [
        "python", "tf_data", "thread", "thread",
    ]  # fmt: skip


def test_all_tracks_of_a_run() -> None:
    """Devices by number with their lines by kind and id, chips below their cores, the host's threads, the
    rest.
    """
    event = [DrawnEvent("e", 0, 1)]

    def plane(name: str, *lines: str, ids: dict[str, int] | None = None) -> DrawnPlane:
        return DrawnPlane(name, dict.fromkeys(lines, event), line_ids=ids or {})

    trace = build(
        [
            plane("/host:metadata", "x"),
            plane("/host:CPU", "pool/10", "pool/9", "named", "main", "python", "tf_data_1"),
            plane("#Chip1", "link"),
            plane("/device:TPU:1", "odd", "Source code", "XLA Ops", "Steps", "XLA Modules"),
            plane("/device:TPU:0", "Stream #10", "Stream #2"),
            DrawnPlane("/device:TPU:2", {"XLA Ops": event, "": event, "empty": []}, line_ids={"": 77}),
        ]
    )
    shown = [(track.section, track.name, track.kind) for track in tracks(trace) if not track.is_derived]
    assert shown == [
        ("TPU:0", "Stream #2", "stream"),
        ("TPU:0", "Stream #10", "stream"),
        ("TPU:1", "Steps", "steps"),
        ("TPU:1", "XLA Modules", "modules"),
        ("TPU:1", "XLA Ops", "hlo_ops"),
        ("TPU:1", "Source code", "source"),
        ("TPU:1", "odd", "other"),
        ("Chip1", "link", "other"),
        ("TPU:2", "XLA Ops", "hlo_ops"),
        ("TPU:2", "line 77", "other"),
        ("Host threads", "python", "python"),
        ("Host threads", "main", "thread"),
        ("Host threads", "named", "thread"),
        ("Host threads", "pool/9", "thread"),
        ("Host threads", "pool/10", "thread"),
        ("Host threads", "tf_data_1", "tf_data"),
        ("/host:metadata", "x", "other"),
    ]


def test_counters_without_samples_are_no_tracks() -> None:
    """Of a host, counters come after its threads, by their number."""
    trace = build([DrawnPlane("/host:CPU", {"zz": [DrawnEvent("a", 0, 1), DrawnEvent("b", 2, 1)]})])
    name = {text: trace.strings.find(text) for text in ("zz", "a", "b")}
    rows = [(0, name["b"], name["a"], 0, 2), (0, name["a"], -1, 2, 0), (0, name["a"], -1, 2, 1)]
    samples = {"time_ps": np.array([1, 2, 3]), "value": np.array([1.0, 2.0, 3.0])}
    counted = replace(
        trace, counters=table_from_rows(schema.COUNTERS, rows), samples=Table(schema.SAMPLES, samples)
    )
    shown = [(track.line, track.name, track.kind, track.is_derived) for track in tracks(counted)]
    assert shown == [(0, "zz", "thread", False), (1, "b: a", "counter", False), (3, "a", "counter", False)]
