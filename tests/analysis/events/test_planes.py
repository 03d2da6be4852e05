"""Planes and lines by role."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.events.planes import DERIVED_OPS, line_events, lines_named, planes, step_line_of_gpu
from tests.builders import DrawnEvent, DrawnPlane, build

EVENTS = [DrawnEvent("e", 1, 1)]


def plane(name: str) -> DrawnPlane:
    return DrawnPlane(name, {"line": EVENTS})


def test_roles_follow_the_tracers_names() -> None:
    names = (
        "/host:CPU",
        "/device:GPU:0",
        "/device:TPU:0",
        "/device:TPU:1 SparseCore 2",
        "/host:CPU",
        "/device:TPU:1",
        "/device:XPU:3",
        "/device:HPU:1",
        "/device:MTIA:10",
        "/device:TPU:0 SparseCore tile 4",
        "/host:metadata",
        "/device:GPU:0 (x)",
        "/device:CUSTOM:1",
        "#Chip0",
        "/host:CPU2",
        "/device:TPU:0 x",
    )
    roles = planes(build([plane(name) for name in names]))
    assert roles.hosts == (0, 4)
    assert roles.gpus == (1, 6, 7, 8)
    assert roles.tensor_cores == (2, 5)
    assert roles.sparse_cores == (3, 9)


@pytest.mark.parametrize(
    ("names", "hardware", "has_device"),
    [
        (("/host:CPU",), "CPU", False),
        (("/host:CPU", "/device:GPU:0"), "GPU", True),
        (("/device:GPU:0", "/device:TPU:0"), "TPU", True),
        (("/device:TPU:0 SparseCore 0", "/device:GPU:1"), "TPU", True),
        (("/device:TPU:0 SparseCore 0",), "TPU", True),
    ],
)
def test_hardware(names: tuple[str, ...], hardware: str, has_device: bool) -> None:
    roles = planes(build([plane(name) for name in names]))
    assert (roles.hardware, roles.has_device) == (hardware, has_device)


def test_lines_that_back_ends_derive_have_ids_from_0xdeadbeef_on() -> None:
    """500 of them; ids are unsigned 32-bit numbers, which some writers sign."""
    first = 0xDEADBEEF
    ids = {
        "before": first - 1,
        "steps": first,
        "ops": first + 3,
        "last": first + 499,
        "after": first + 500,
        "signed": first + 1 - (1 << 32),
        "stream": 7,
    }
    gpu = DrawnPlane("/device:GPU:0", dict.fromkeys(ids, EVENTS), line_ids=ids)
    other = DrawnPlane("/device:GPU:1", {"a": EVENTS, "b": EVENTS}, line_ids={"a": 1, "b": first + 3})
    signed = DrawnPlane(
        "/device:GPU:2", {"a": EVENTS, "b": EVENTS}, line_ids={"a": 1, "b": first - (1 << 32)}
    )
    trace = build([gpu, other, signed])
    derived = {trace.line_names[i] for i in range(7) if planes(trace).is_derived_line[i]}
    assert derived == {"steps", "ops", "last", "signed"}
    assert ids["ops"] == DERIVED_OPS
    assert [step_line_of_gpu(trace, i) for i in range(3)] == [1, -1, 10]


def test_lines_and_events_of_a_plane() -> None:
    lines = {"XLA Ops": EVENTS * 3, "Steps": EVENTS, "Async XLA Ops": EVENTS * 2}
    trace = build([DrawnPlane("/device:TPU:0", lines), DrawnPlane("/device:TPU:1", lines)])
    assert lines_named(trace, 1, ("XLA Ops", "Async XLA Ops")) == [3, 5]
    assert lines_named(trace, 0, ("Ops",)) == []
    assert [line_events(trace, line) for line in (0, 2, 3)] == [slice(0, 3), slice(4, 6), slice(6, 9)]
