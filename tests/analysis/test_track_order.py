"""The order of tracks: sections of devices by number, then hosts' threads, then the rest."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.timeline.tracks import _host_rank, host_kind, natural, section_of


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
    assert ranks == {"python3": 0, "main": 1, "main/7": 1, "named": 2, "worker/12": 3}
    assert _host_rank("python3", "async") == 4
    assert _host_rank("main", "counter") == 5


@pytest.mark.parametrize(
    ("first", "second"), [("worker 2", "worker 10"), ("a9b10", "a10b9"), ("x", "x1"), ("B1", "b2")]
)
def test_numbers_in_names_sort_by_value(first: str, second: str) -> None:
    assert natural(first) < natural(second)
