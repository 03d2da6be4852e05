"""The time of a step in which devices are busy and compute, and matrix products that fill their
unit least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis import device_evidence as module
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.builders import drawing

IDLE = {
    TimeClass.UNKNOWN,
    TimeClass.HOST_PYTHON,
    TimeClass.HOST_WAIT,
    TimeClass.HOST_WAIT_LOADER,
    TimeClass.HOST_TO_DEVICE,
    TimeClass.HOST_WAIT_INPUT,
    TimeClass.HOST_COMPILE,
}
COMPUTES = {TimeClass.DEVICE_COMPUTE_16, TimeClass.DEVICE_COMPUTE_32}


@pytest.mark.parametrize("kind", ["TPU", "GPU"])
def test_devices_are_busy_unless_the_host_or_nobody_does_anything(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three unlike steps, each of whose classes lasts differently long."""
    class_ps = np.array([[(i + 1) * 7 + i * c * c for c in range(len(TimeClass))] for i in range(3)])
    steps = SimpleNamespace(class_ps=class_ps, duration_ps=class_ps.sum(axis=1))
    given: list[Any] = []

    class Steps(SimpleNamespace):
        def __len__(self) -> int:
            return 3

    shown = Steps(**vars(steps))
    for name, value in (
        ("waiting", lambda _trace: SimpleNamespace(steps=shown)),
        ("planes", lambda _trace: SimpleNamespace(hardware=kind)),
        ("hlo_ops", lambda _trace: "operations"),
        ("_of_tpu", lambda *arguments: given.append(("TPU", arguments[1], *arguments[2:]))),
        ("_of_gpu", lambda *arguments: given.append(("GPU", arguments[1], *arguments[3:]))),
    ):
        monkeypatch.setattr(module, name, value)
    module.device_evidence(drawing("main [x ]"))
    busy = sum(int(class_ps[i, c]) for i in range(3) for c in TimeClass if c not in IDLE) / 3
    compute = sum(int(class_ps[i, c]) for i in range(3) for c in COMPUTES) / 3
    assert given == [(kind, "operations", pytest.approx(busy), pytest.approx(compute))]


@dataclass(frozen=True)
class Product:
    name: str
    text: str
    fill: float


@pytest.mark.parametrize(
    ("instruction", "products", "found"),
    [
        (
            0,
            [Product("dot.1", "9 of 16", 0.9), Product("dot.2", "2 of 16", 0.2), Product("dot.3", "5", 0.5)],
            ("`dot.2`: 2 of 16", 0.2),
        ),
        (4, [Product("dot.1", "9 of 16", 0.9)], ("`dot.1`: 9 of 16", 0.9)),
        (0, [], ("", None)),
        (-1, [Product("dot.1", "9 of 16", 0.9)], ("", None)),
    ],
)
def test_the_product_that_fills_the_matrix_unit_least(
    instruction: int,
    products: list[Product],
    found: tuple[str, float | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr(module, "products", lambda *arguments: asked.append(arguments) or products)
    trace: Any = SimpleNamespace(programs=SimpleNamespace(module=lambda number: f"module {number}"))
    ops: Any = SimpleNamespace(program=np.array([7, 8]), instruction=np.array([-1, instruction]))
    text, fill = module._padding(trace, ops, 1, 128)
    assert (text, None if math.isnan(fill) else fill) == found
    assert asked == ([("module 8", instruction, 128)] if instruction >= 0 else [])


def test_a_product_of_a_program_that_is_not_in_the_trace_is_unknown() -> None:
    trace: Any = SimpleNamespace(programs=SimpleNamespace(module=lambda _number: None))
    ops: Any = SimpleNamespace(program=np.array([7]), instruction=np.array([3]))
    text, fill = module._padding(trace, ops, 0, 128)
    assert (text, math.isnan(fill)) == ("", True)
