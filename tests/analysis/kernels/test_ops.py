"""The operation that each kernel was launched for: framework names, HLO instructions, derived lines, in that
order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tb_tpuprof.analysis.kernels.kernels import kernels
from tb_tpuprof.analysis.kernels.ops import KernelOps, kernel_ops, op_columns
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, Stats, build
from tests.synthetic import field

DERIVED = 0xDEADBEEF + 3  # the id of a line that a profiler's back end made


def instruction(name: str, opcode: str, op_name: str) -> bytes:
    metadata = field(7, field(2, op_name.encode()))
    return field(2, field(1, name.encode()) + field(2, opcode.encode()) + metadata)


PROGRAM = field(
    1,
    field(1, b"jit_f")
    + field(
        3,
        b"".join(
            instruction(*one)
            for one in (
                ("dot.1", "dot", "jit(f)/mul"),
                ("conv.2", "convolution", ""),
                ("fusion.3", "fusion", "jit(f)/dot_general"),
                ("fusion.4", "fusion", "jit(f)/add"),
                ("fusion.5", "fusion", "model/MatMul:Custom"),
                ("dot_general.6", "custom-call", "jit(f)/add"),
            )
        ),
    ),
)


def trace_of(*kernels_of_gpu: Sequence[DrawnEvent], derived: Sequence[DrawnEvent] = ()) -> Trace:
    """GPUs with one stream each; the first one may have a derived line, which lies before its stream."""
    planes = []
    for i, events in enumerate(kernels_of_gpu):
        lines = {"Stream #1": list(events)}
        if derived and not i:
            lines = {"TensorFlow Ops": list(derived), **lines}
        planes.append(DrawnPlane(f"/device:GPU:{i}", lines, line_ids={"TensorFlow Ops": DERIVED}))
    modules = {"module(7)": {"Hlo Proto": PROGRAM}}
    fill = [DrawnEvent(f"module({i})", 0, 0) for i in range(8)]
    return build([DrawnPlane("/host:metadata", {"Filler": fill}, metadata_stats=modules), *planes])


def kernel(start: int, length: int = 5, **stats: str | int) -> DrawnEvent:
    given: Stats = stats
    return DrawnEvent("k", start, length, given)


def rows_of(trace: Trace) -> np.ndarray:
    streams = [i for i, name in enumerate(trace.line_names) if name == "Stream #1"]
    spans = [np.arange(trace.line_offsets[i], trace.line_offsets[i + 1]) for i in streams]
    return np.concatenate(spans)


def ops(trace: Trace) -> KernelOps:
    return kernel_ops(trace, rows_of(trace))


def found(trace: Trace) -> list[tuple[str, bool, bool]]:
    """(operation, whether tensor cores could run it, whether it ran an instruction) of each kernel."""
    table = ops(trace)
    columns = zip(table.code.tolist(), table.is_compiled.tolist(), strict=True)
    return [(table.names[code], table.is_eligible[code], is_compiled) for code, is_compiled in columns]


def compiled(start: int, name: str, program: int = 7, **stats: str | int) -> DrawnEvent:
    return kernel(start, hlo_op=name, program_id=program, **stats)


def test_instructions_have_the_names_that_the_framework_gave_them() -> None:
    """Dots and convolutions by their opcode, others by what they or their framework's operation are
    called.
    """
    trace = trace_of(
        [
            compiled(0, "%dot.1"),
            compiled(10, "conv.2"),
            compiled(20, "fusion.3"),
            compiled(30, "call.1::fusion.4"),
            compiled(40, "call.1/fusion.5"),
            compiled(50, "dot_general.6"),
            compiled(60, "unknown.7"),
            compiled(70, "dot.1", program=9),  # a program that the trace does not have
            compiled(80, "fusion.4"),
        ]
    )
    assert found(trace) == [
        ("jit(f)/mul", True, True),
        ("conv.2", True, True),
        ("jit(f)/dot_general", True, True),
        ("jit(f)/add", False, True),
        ("model/MatMul", True, True),
        ("jit(f)/add", True, True),
        ("unknown.7", False, True),
        ("dot.1", True, True),
        ("jit(f)/add", False, True),
    ]


def test_the_frameworks_name_comes_first_then_the_instruction_then_a_derived_line() -> None:
    derived = [DrawnEvent("x/Relu:Relu", 0, 100), DrawnEvent("y/MatMul:MatMul", 100, 50)]
    trace = trace_of(
        [
            compiled(0, "dot.1", tf_op="a/Conv2D:Conv2D"),
            compiled(10, "dot.1", tf_op="XlaModule:"),
            compiled(20, "dot.1", tf_op=""),
            compiled(30, "", tf_op="XlaModule:"),
            kernel(40),
            kernel(94, 6),
            kernel(96, 6),
            kernel(100),
            kernel(120, tf_op="b/Add:AddV2"),
            kernel(200),
        ],
        [kernel(40)],
        derived=derived,
    )
    assert found(trace) == [
        ("a/Conv2D", True, True),
        ("jit(f)/mul", True, True),
        ("jit(f)/mul", True, True),
        ("x/Relu", False, False),
        ("x/Relu", False, False),
        ("x/Relu", False, False),
        ("", False, False),  # it outlasts the operation
        ("y/MatMul", True, False),
        ("b/Add", False, False),
        ("", False, False),
        ("", False, False),  # of another GPU
    ]


def test_a_kernel_before_the_first_derived_operation_has_none() -> None:
    trace = trace_of([kernel(0), kernel(20)], derived=[DrawnEvent("x/Relu:Relu", 10, 50)])
    assert [name for name, *_ in found(trace)] == ["", "x/Relu"]


def test_no_operation_is_the_first_row_and_each_other_is_one() -> None:
    trace = trace_of([kernel(0), kernel(10, tf_op="a/Add:Add"), kernel(20, tf_op="a/Add:Add"), kernel(30)])
    table = ops(trace)
    assert (table.names, table.is_eligible) == (("", "a/Add"), (False, False))
    assert table.code.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("stats", "n"),
    [
        ({}, 0),
        ({"tf_op": "a"}, 1),
        ({"hlo_op": "a"}, 1),
        ({"program_id": 3}, 1),
        ({"tf_op": "a", "hlo_op": "a", "program_id": 3}, 3),
    ],
)
def test_operations_depend_on_the_stats_that_the_trace_has(stats: Stats, n: int) -> None:
    trace = trace_of([DrawnEvent("k", 0, 5, stats)])
    assert len(op_columns(trace, rows_of(trace))) == n
    with_line = trace_of([DrawnEvent("k", 0, 5, stats)], derived=[DrawnEvent("x/Relu:Relu", 0, 9)])
    assert len(op_columns(with_line, rows_of(with_line))) == n + 1


def test_kernels_that_differ_in_one_stat_only_are_apart() -> None:
    """Equal names and launches, of unlike instructions, programs and derived operations."""
    trace = trace_of(
        [compiled(0, "dot.1"), compiled(10, "fusion.4"), compiled(20, "dot.1", program=9), kernel(30)],
        derived=[DrawnEvent("x/Relu:Relu", 0, 90)],
    )
    table = kernels(trace)
    assert sorted(zip(table.op, table.library, strict=True)) == [
        ("dot.1", "XLA"),
        ("jit(f)/add", "XLA"),
        ("jit(f)/mul", "XLA"),
        ("x/Relu", table.library[table.op.index("x/Relu")]),
    ]
    assert table.library[table.op.index("x/Relu")] != "XLA"


def test_of_two_derived_lines_of_a_gpu_the_first_counts() -> None:
    lines = {
        "TensorFlow Ops": [DrawnEvent("x/Relu:Relu", 0, 50)],
        "TensorFlow Ops 2": [DrawnEvent("y/Add:Add", 0, 50)],
        "TensorFlow Ops 3": [DrawnEvent("z/Mul:Mul", 0, 50)],
        "Stream #1": [kernel(10)],
    }
    ids = {name: DERIVED for name in lines if name != "Stream #1"}
    trace = build([DrawnPlane("/device:GPU:0", lines, line_ids=ids)])
    assert [name for name, *_ in found(trace)] == ["x/Relu"]
