"""Differences between operators: callers, inputs and shapes, on traces where each row differs; and ties of
the backward pass.
"""

from __future__ import annotations

import gzip
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.details import call_stacks, with_hlo_shapes
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.roofline import Roofs
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.analysis.ops.wasted import wasted_ps
from tb_tpuprof.analysis.pytorch.inputs import Inputs
from tb_tpuprof.analysis.pytorch.ties import backward_ties
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.trace.trace import Trace
from tests.analysis.ops.test_torch_kernels import (
    GEMM,
    HOST,
    STREAM,
    events,
    frame,
    kernel,
    launch,
    names_of,
    op,
    whole,
    x,
)
from tests.analysis.ops.test_wasted_time import OPS
from tests.ingest.chrome_files import Event, opened

OTHER = {"pid": 100, "tid": 200}


def arrow(phase: str, ts: float, where: dict[str, int], number: int, cat: str, name: str) -> Event:
    return {"ph": phase, "cat": cat, "name": name, "id": number, "ts": ts, "bp": "e", **where}


def stacks(trace: Trace) -> dict[str, str]:
    """The callers of each event that has any; of events of one name the last one's."""
    details = call_stacks(trace)
    texts = details.of(details.code.astype(np.int64))
    names = names_of(trace, np.arange(trace.n_events))
    return {name: text for name, text in zip(names, texts, strict=True) if text}


def test_ties_are_arrows_of_the_backward_pass(tmp_path: Path) -> None:
    """By the arrow's category or its name; another arrow ties nothing."""
    kinds = (("fwdbwd", "a"), ("other", "fwdbwd"), ("ac2g", "x"), ("fwdbwd", "fwdbwd"))
    listed = [x("cpu_op", f"forward{i}", 10 * i, 8, HOST) for i in range(4)]
    listed += [x("cpu_op", f"backward{i}", 100 + 10 * i, 8, OTHER) for i in range(4)]
    for i, (cat, name) in enumerate(kinds):
        listed += [
            arrow("s", 10 * i + 1, HOST, 70 + i, cat, name),
            arrow("f", 101 + 10 * i, OTHER, 70 + i, cat, name),
        ]
    trace = opened(tmp_path, whole(listed))
    tied, source = backward_ties(trace)
    names = names_of(trace, np.arange(trace.n_events))
    assert len(trace.flows) == 4
    assert {names[i]: names[source[i]] for i in np.flatnonzero(tied)} == {
        f"backward{i}": f"forward{i}" for i in (0, 1, 3)
    }
    assert set(source[~tied].tolist()) == {-1}


def test_callers_are_those_of_operators_alone(tmp_path: Path) -> None:
    """The outermost event of the thread is a function itself; what no operator launched has no callers."""
    listed = [one for one in events() if one["name"] not in ("ProfilerStep#1", "model.py(12): forward")]
    assert listed[0]["name"] == "train.py(10): step"
    found = stacks(opened(tmp_path, whole(listed)))
    own = {name: text for name, text in found.items() if name.startswith("aten::")}
    assert own == dict.fromkeys(
        ("aten::linear", "aten::addmm", "aten::add", "aten::mm", "aten::sort", "aten::copy_"),
        "train.py:10 step",
    )
    assert {"stray", "train.py(10): step", "cudaLaunchKernel"} & set(found) == set()
    assert found[GEMM] == found["sort"] == "train.py:10 step"


def test_a_trace_without_operators_has_no_callers(tmp_path: Path) -> None:
    trace = opened(
        tmp_path, whole([frame("a.py(1): f", 0, 9), x("cuda_runtime", "cudaLaunchKernel", 1, 1, HOST)])
    )
    details = call_stacks(trace)
    assert details.texts == ()
    assert set(details.code.tolist()) == {-1}


def test_callers_of_the_backward_pass_come_first(tmp_path: Path) -> None:
    """An operator that a function calls during the backward pass keeps it, though its forward one has
    none.
    """
    listed = [
        op("aten::mul", 10, 8, [[4]], ["float"]),
        x("cpu_op", "MulBackward0", 100, 40, OTHER),
        x("python_function", "hook.py(3): hook", 105, 20, OTHER),
        x("cpu_op", "aten::clone", 110, 5, OTHER),
        x("cpu_op", "aten::mul", 130, 5, OTHER),
        arrow("s", 11, HOST, 7, "fwdbwd", "fwdbwd"),
        arrow("f", 101, OTHER, 7, "fwdbwd", "fwdbwd"),
    ]
    assert stacks(opened(tmp_path, whole(listed))) == {"aten::clone": "hook.py:3 hook"}


def test_only_operations_that_their_program_has_get_its_shapes(tmp_path: Path) -> None:
    """One without a program and one of another name keep their details."""
    packed = Path(__file__).parents[2] / "data" / "gpu" / "jax_async1.xplane.pb.gz"
    (tmp_path / "jax.xplane.pb").write_bytes(gzip.decompress(packed.read_bytes()))
    trace = open_trace(str(tmp_path / "jax.xplane.pb"))
    ops = op_stats(trace).compiled
    known = [i for i, program in enumerate(ops.program) if program > 0][:3]
    assert len(known) == 3
    named = with_hlo_shapes(trace, ops).details
    assert all("→" in named[i] for i in known)
    own = tuple(f"own {i}" for i in range(len(ops)))
    program = tuple(0 if i == known[0] else one for i, one in enumerate(ops.program))
    name = tuple("no such instruction" if i == known[1] else one for i, one in enumerate(ops.name))
    changed = with_hlo_shapes(trace, replace(ops, program=program, name=name, details=own)).details
    assert [changed[i] for i in known] == [f"own {known[0]}", f"own {known[1]}", named[known[2]]]
    none = replace(ops, program=(0,) * len(ops), details=own)
    assert with_hlo_shapes(trace, none).details == own


def test_operators_of_one_name_and_unlike_types_are_one_row(tmp_path: Path) -> None:
    """Their order does not mix up the others' categories; one without sizes has its name alone."""
    sizes = [[8, 128], [128, 24]]
    listed = [
        *events(),
        op("aten::mm", 170, 5, sizes, ["c10::Half", "c10::Half"]),
        launch(171, 41),
        x("cpu_op", "aten::relu", 180, 5, HOST),
        launch(181, 42),
        kernel("half gemm", 260, 8, 41),
        kernel("relu", 270, 2, 42),
    ]
    ops = device_ops(opened(tmp_path, whole(listed)))
    rows = {
        ops.name[i]: (ops.category[i], int(ops.time_ps[i]) // 10**6, int(ops.n_occurrences[i]))
        for i in range(len(ops))
    }
    assert rows == {
        "aten::addmm (16, 64×32, 32×16)": ("matrix multiplication", 36, 1),
        "aten::add (64×16, 64×16)": ("elementwise", 4, 1),
        "aten::mm (8×128, 128×24)": ("matrix multiplication", 48 + 8, 3),
        "aten::sort (64)": ("reduction", 9, 1),
        "aten::relu": ("elementwise", 2, 1),
        "cudaGraphLaunch in Compiled": ("graph launch", 24, 1),
        "stray": ("kernel without an operator", 3, 1),
    }
    assert STREAM


def test_bytes_of_inputs_need_their_shape_and_their_type() -> None:
    inputs = Inputs(((2, 3), None, (4,), ()), ("float", "float", "nobody's", "double"))
    assert inputs.n_bytes(0) == 24
    assert inputs.n_bytes(0, 3) == 24 + 8
    assert math.isnan(inputs.n_bytes(1))
    assert math.isnan(inputs.n_bytes(2))
    assert inputs.n_bytes(9) == 0


@pytest.mark.parametrize(
    ("peaks", "is_wasted"),
    [
        (Roofs(1.0, (0.0,) * 5), True),
        (Roofs(0.0, (0, 0, 0, 1e12, 0)), True),
        (Roofs(0.0, (1e11, 0, 0, 0, 0)), True),
        (Roofs(0.0, (0.0,) * 5), False),
    ],
)
def test_waiting_is_wasted_where_any_peak_is_known(peaks: Roofs, is_wasted: bool) -> None:
    infeed: Any = wasted_ps(OPS, peaks)[8]
    assert infeed == 9 * 10**6 if is_wasted else math.isnan(infeed)
