import numpy as np
import pytest

from tb_tpuprof.analysis.events.hlo_names import Instruction, Instructions, replicas
from tb_tpuprof.analysis.ops.host import host_ops
from tb_tpuprof.analysis.ops.metrics import NO_OPERATION, OpMetrics, add_up, by_framework_op, no_ops
from tb_tpuprof.analysis.ops.stats import op_stats, sum_op_stats
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing


def rows(ops: OpMetrics) -> dict[str, tuple[str, int, float, float]]:
    """Type, occurrences, total and self time (in columns of the drawing) by name."""
    columns = (ops.name, ops.type, ops.n_occurrences.tolist(), ops.time_ps.tolist(), ops.self_ps.tolist())
    return {name: (type_, n, time / PS, own / PS) for name, type_, n, time, own in zip(*columns, strict=True)}


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def hlo_proto(**op_names: str) -> bytes:
    made = [
        field(2, field(1, name.encode()) + field(2, b"dot") + field(7, field(2, op.encode())))
        for name, op in op_names.items()
    ]
    return field(1, field(1, b"jit_f") + field(3, b"".join(made)))


def test_host_operations_with_self_times_and_idle() -> None:
    ops = host_ops(
        drawing("""
            main    [a/While:While           ]     [a/While:While]   [not an op]
            main      [a/MatMul:MatMul]
            second  [Iterator::Root::Map]
            """)
    )
    assert rows(ops) == {
        "a/While": ("While", 2, 41, 24),
        "a/MatMul": ("MatMul", 1, 17, 17),
        "Iterator::Root::Map": ("Dataset", 1, 21, 21),
    }
    assert ops.span_ps == (46 + 21) * PS
    assert ops.idle_ps == 5 * PS
    assert ops.busy_ps + ops.idle_ps == ops.span_ps


def test_events_that_name_their_operation_in_a_stat() -> None:
    ops = host_ops(
        drawing(
            "main  [cudaLaunch     ][Add:Add       ][nameless]",
            {
                "cudaLaunch": {"tf_op": "x/Add"},
                "Add:Add": {"tf_op": "other:Op"},
                "nameless": {"tf_op": "(null)"},
            },
        )
    )
    assert rows(ops) == {"x/Add": ("", 1, 17, 17), "Add": ("Add", 1, 16, 16)}


def test_an_operation_that_also_appears_without_its_type_is_one_operation() -> None:
    ops = host_ops(drawing("main  [launch  ][x/Add:Add]", {"launch": {"tf_op": "x/Add"}}))
    assert rows(ops) == {"x/Add": ("Add", 2, 21, 21)}


def test_a_launch_inside_of_the_operation_that_it_works_for_is_part_of_it() -> None:
    ops = host_ops(
        drawing(
            """
            main  [x/Add:Add                     ] [launch]
            main   [launch] [launch] [launch]
            """,
            {"launch": [{"tf_op": "x/Add"}, {"tf_op": "x/Mul"}, {"tf_op": "x/Add:Add"}, {"tf_op": "x/Add"}]},
        )
    )
    assert rows(ops) == {"x/Add": ("Add", 2, 40, 32), "x/Mul": ("", 1, 8, 8)}


def test_memory_for_an_operation_is_no_execution_of_it() -> None:
    """Whether it is an instant, as TensorFlow writes it, or lasts: three operations, of which one only
    allocates.
    """
    for duration in (0, PS):
        events = [DrawnEvent("a/MatMul:MatMul", 10 * i * PS, 8 * PS) for i in range(3)]
        events += [
            DrawnEvent("MemoryAllocation", (10 * i + 2) * PS, duration, {"tf_op": "a/MatMul"})
            for i in range(3)
        ]
        events += [
            DrawnEvent("MemoryDeallocation", (10 * i + 9) * PS, duration, {"tf_op": "b/Mul"})
            for i in range(2)
        ]
        events += [
            DrawnEvent("MemoryAllocation", 40 * PS, duration, {"tf_op": "c/Const:Const"}),
            DrawnEvent("b/Mul:Mul", 50 * PS, PS),
        ]
        events.sort(key=lambda event: (event.start_ps, -event.duration_ps))
        ops = host_ops(build([DrawnPlane("/host:CPU", {"main": events})]))
        assert rows(ops) == {"a/MatMul": ("MatMul", 3, 24, 24), "b/Mul": ("Mul", 1, 1, 1)}
        assert ops.span_ps == 51 * PS
    marks = [
        DrawnEvent("MemoryAllocation", 0, 0, {"tf_op": "c/Const"}),
        DrawnEvent("mark", 5 * PS, 0, {"tf_op": "c/Const"}),
    ]
    assert len(host_ops(build([DrawnPlane("/host:CPU", {"main": marks})]))) == 0


def test_an_eager_execution_is_its_kernel_named_by_its_dispatch() -> None:
    """Three operations on two threads, with the allocation inside; the function that is called runs its own
    operations.
    """
    ops = host_ops(
        drawing(
            """
            main   [EagerExecute                ] [EagerExecute              ] [EagerExecute                 ]
            main    [EagerLocalExecute: MatMul ]   [EagerLocalExecute: Exp  ]   [EagerLocalExecute: MyStep  ]
            main      [EagerKernelExecute  ]        [EagerKernelExecute  ]        [EagerKernelExecute  ]
            main        [MemoryAllocation]
            other  [EagerLocalExecute: Exp     ] [EagerLocalExecute: __inference_f_2]
            other   [EagerKernelExecute  ]         [EagerKernelExecute  ]
            other                                     [f/Exp:Exp]
            """,
            {
                "EagerExecute": [{"is_func": 0}, {"is_func": 0}, {"is_func": 1}],
                "MemoryAllocation": {"tf_op": "_MklMatMul"},
            },
        )
    )
    assert rows(ops) == {
        "MatMul": ("MatMul", 1, 22, 22),
        "Exp": ("Exp", 2, 44, 44),
        "f/Exp": ("Exp", 1, 11, 11),
    }
    assert dict(zip(ops.name, ops.is_eager.tolist(), strict=True)) == {
        "MatMul": True,
        "Exp": True,
        "f/Exp": False,
    }


def test_what_runs_eagerly_and_in_functions_under_one_name_is_two_rows_on_any_number_of_hosts() -> None:
    text = """
        main   [EagerExecute                ]   [EagerExecute                ]
        main    [EagerLocalExecute: MatMul ]     [EagerLocalExecute: MatMul ]
        main      [EagerKernelExecute  ]            [EagerKernelExecute ]
        other  [MatMul:FusedMatMul]
        """
    one = op_stats(drawing(text, {"EagerExecute": {"is_func": 0}}))
    for ops, n in ((one.host, 1), (sum_op_stats([one, one, one]).host, 3)):
        found = zip(
            ops.name,
            ops.type,
            ops.is_eager.tolist(),
            ops.n_occurrences.tolist(),
            ops.self_ps.tolist(),
            strict=True,
        )
        assert sorted(found) == [
            ("MatMul", "FusedMatMul", False, n, n * 20 * PS),
            ("MatMul", "MatMul", True, 2 * n, n * 43 * PS),
        ]


def test_an_eager_execution_that_is_traced_by_its_type_as_well_counts_once_with_the_inner_time() -> None:
    """As on GPUs: with a launch inside of it. An input's stage inside of an eager fetch is an operation of
    its own.
    """
    ops = host_ops(
        drawing(
            """
            main  [EagerExecute                           ] [EagerExecute                         ]
            main   [EagerLocalExecute: MatMul            ]   [EagerLocalExecute: IteratorGetNext ]
            main    [EagerKernelExecute                 ]     [EagerKernelExecute             ]
            main     [MatMul:MatMul            ]                [Iterator::Prefetch]
            main       [cudaLaunch]
            """,
            {"EagerExecute": {"is_func": 0}, "cudaLaunch": {"tf_op": "MatMul"}},
        )
    )
    assert rows(ops) == {
        "MatMul": ("MatMul", 1, 27, 27),
        "IteratorGetNext": ("IteratorGetNext", 1, 33, 13),
        "Iterator::Prefetch": ("Dataset", 1, 20, 20),
    }
    assert ops.is_eager.tolist() == [name != "Iterator::Prefetch" for name in ops.name]


def asynchronous(kernels: str) -> OpMetrics:
    drawn = f"""
        main   [EagerLocalExecute: Exp]   [EagerLocalExecute: MatMul] [EagerLocalExecute: Exp]
        queue  {kernels}
        """
    return host_ops(drawing(drawn))


def test_an_operation_that_another_thread_runs_later_takes_what_its_kernel_takes() -> None:
    ops = asynchronous(
        "       [EagerKernelExecute ]   [EagerKernelExecute          ] [EagerKernelExecute    ]"
    )
    assert rows(ops) == {"Exp": ("Exp", 2, 45, 45), "MatMul": ("MatMul", 1, 30, 30)}
    # Of two kernels for three dispatches nobody knows whose they are.
    ops = asynchronous(
        "                               [EagerKernelExecute          ] [EagerKernelExecute    ]"
    )
    assert rows(ops) == {"Exp": ("Exp", 2, 48, 48), "MatMul": ("MatMul", 1, 27, 27)}
    # A kernel that began before its dispatch is another one's.
    ops = asynchronous("       [EagerKernelExecute ][EagerKernelExecute] [EagerKernelExecute    ]")
    assert rows(ops) == {"Exp": ("Exp", 2, 48, 48), "MatMul": ("MatMul", 1, 27, 27)}


def test_xla_on_the_cpu_where_there_is_no_device() -> None:
    trace = drawing(
        "main  [dot.1     ][end: dot.1][dot.1     ]",
        {"dot.1": {"hlo_op": "dot.1"}, "end: dot.1": {"hlo_op": "dot.1"}},
    )
    assert rows(host_ops(trace)) == {"dot.1": ("dot", 2, 24, 24)}


def test_stages_of_an_input_pipeline() -> None:
    trace = drawing("main  [read     ]", {"read": {"_ipl_stage_id": 3, "_ipl_stage_cat": "Read"}})
    assert rows(host_ops(trace)) == {"read": ("Read", 1, 11, 11)}


def gpu(kernels: list[tuple[str, int, int]], group: bool = True) -> DrawnPlane:
    events = [
        DrawnEvent(
            "kernel",
            start * PS,
            length * PS,
            {"hlo_op": op, "program_id": 7, **({"group_id": 0} if group else {})},
        )
        for op, start, length in kernels
    ]
    return DrawnPlane("/device:GPU:0", {"Stream #1": events})


def with_hlo(plane: DrawnPlane) -> list[DrawnPlane]:
    names = {"Filler": [DrawnEvent(f"module({i})", 0, 0) for i in range(8)]}
    metadata = DrawnPlane(
        "/host:metadata",
        names,
        metadata_stats={"module(7)": {"Hlo Proto": hlo_proto(dot="jit(f)/dot_general", add="")}},
    )
    return [metadata, plane]


def test_kernels_of_one_instruction_in_a_row_are_one_occurrence_of_it() -> None:
    found = op_stats(
        build(
            with_hlo(
                gpu(
                    [
                        ("dot", 0, 3),
                        ("dot", 4, 2),
                        ("call::add", 10, 1),
                        ("call/%dot", 12, 3),
                        ("gone", 20, 1),
                    ]
                )
            )
        )
    )
    assert rows(found.device) == {
        "jit(f)/dot_general": ("dot_general", 2, 8, 8),
        "add": ("Unknown", 1, 1, 1),
        "gone": ("Unknown", 1, 1, 1),
    }
    assert found.device.span_ps == 21 * PS


def test_without_steps_every_kernel_counts() -> None:
    found = op_stats(build(with_hlo(gpu([("dot", 0, 3), ("dot", 4, 2)], group=False))))
    assert rows(found.device) == {"jit(f)/dot_general": ("dot_general", 2, 5, 5)}


def test_kernels_by_framework_operation_and_by_the_files_own_lines() -> None:
    named = [DrawnEvent("gemm", i * 10 * PS, 4 * PS, {"tf_op": "a/MatMul:MatMul"}) for i in range(2)]
    found = op_stats(build([DrawnPlane("/device:GPU:0", {"Stream #1": named})]))
    assert rows(found.device) == {"a/MatMul": ("MatMul", 2, 8, 8)}
    kernels = [DrawnEvent("gemm", i * 10 * PS, 4 * PS, {"kernel_details": "x"}) for i in range(2)]
    derived = [DrawnEvent("a/MatMul:MatMul", 0, 15 * PS)]
    plane = DrawnPlane(
        "/device:GPU:0",
        {"Stream #1": kernels, "TensorFlow Ops": derived},
        line_ids={"TensorFlow Ops": -559038734},
    )
    assert rows(op_stats(build([plane])).device) == {"a/MatMul": ("MatMul", 1, 8, 8)}
    # Its kernels on three streams are one occurrence as well; what lies outside of it is of no operation.
    lines = {
        f"Stream #{i}": [DrawnEvent(f"k{i}", i * PS, (4 + i) * PS, {"kernel_details": "x"})] for i in range(3)
    }
    lines["Stream #2"].append(DrawnEvent("k2", 20 * PS, PS, {"kernel_details": "x"}))
    plane = DrawnPlane(
        "/device:GPU:0", {**lines, "TensorFlow Ops": derived}, line_ids={"TensorFlow Ops": -559038734}
    )
    assert rows(op_stats(build([plane])).device) == {
        "a/MatMul": ("MatMul", 1, 15, 15),
        "k2": (NO_OPERATION, 1, 1, 1),
    }


def test_tpu_operations_carry_their_work() -> None:
    ops = [
        DrawnEvent("fusion.1", 0, 10 * PS),
        DrawnEvent("dot.1", 2 * PS, 4 * PS),
        DrawnEvent("dot.1", 12 * PS, 4 * PS),
        DrawnEvent("x", 20 * PS, PS),
    ]
    stats = {
        "fusion.1": {"program_id": 1, "symbol_id": 1, "hlo_category": "loop fusion"},
        "dot.1": {
            "program_id": 1,
            "symbol_id": 2,
            "tf_op": "jit(f)/dot_general:",
            "flops": 100,
            "bytes_accessed": 8,
        },
    }
    found = op_stats(build([DrawnPlane("/device:TPU:0", {"XLA Ops": ops}, metadata_stats=stats)]))
    assert rows(found.device) == {
        "fusion.1": ("Unknown", 1, 10, 6),
        "jit(f)/dot_general": ("dot_general", 2, 8, 8),
    }
    assert found.device.flops.tolist() == pytest.approx(
        [np.nan, 200], nan_ok=True
    )  # nothing is stated of the first one's work
    assert found.device.n_bytes.tolist() == pytest.approx([np.nan, 16], nan_ok=True)
    assert found.device.span_ps == 21 * PS


def test_a_devices_own_clock_is_believed() -> None:
    ops = [DrawnEvent("a", 0, 10 * PS, {"device_offset_ps": 5, "device_duration_ps": 3})]
    plane = DrawnPlane(
        "/device:TPU:0", {"XLA Ops": ops}, metadata_stats={"a": {"program_id": 1, "symbol_id": 1}}
    )
    found = op_stats(build([plane])).device
    assert (found.time_ps.tolist(), found.span_ps) == ([3], 3)


def test_hosts_add_up() -> None:
    one = op_stats(drawing("main  [Add:Add  ]"))
    two = sum_op_stats([one, one]).host
    assert (two.n_occurrences.tolist(), two.self_ps.tolist(), two.span_ps) == ([2], [22 * PS], 22 * PS)
    assert len(add_up([])) == 0
    assert len(by_framework_op(no_ops())) == 0


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"\x0a\xff\xff\xff\xff\x7f", b"\x0b\x0b", hlo_proto(a="b")[:-3]]
)
def test_damaged_hlo_yields_what_can_be_read(data: bytes) -> None:
    names: dict[str, list[DrawnEvent]] = {"x": [DrawnEvent("module(7)", 0, 1)]}
    trace = build([DrawnPlane("/host:metadata", names, metadata_stats={"module(7)": {"Hlo Proto": data}})])
    assert Instructions(trace, 7).get("a") is None
    assert replicas(trace) == (0, 0)


def test_instructions_are_found_by_name() -> None:
    trace = build(with_hlo(gpu([])))
    assert Instructions(trace, 7).get("dot") == Instruction("dot", "jit(f)/dot_general")
    assert Instructions(trace, 7).get("gone") is None
    assert Instructions(trace, 8).get("dot") is None
