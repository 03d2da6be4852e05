"""Framework calls, operations above a peak, work of GPU operations and of steps: on numbers written
by hand.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.async_ops import async_ops
from tb_tpuprof.analysis.ops.framework_calls import Call, framework_calls, sum_calls
from tb_tpuprof.analysis.ops.gpu import transfer_ps
from tb_tpuprof.analysis.ops.gpu_work import with_work
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_steps import occurrences, step_work, sum_step_work
from tb_tpuprof.analysis.ops.host import host_ops
from tb_tpuprof.analysis.ops.roof_excess import Excess, excess_notices, excesses
from tb_tpuprof.analysis.ops.roofline import Roofs, possible_work
from tb_tpuprof.analysis.ops.stats import op_stats, sum_op_stats
from tb_tpuprof.analysis.ops.tpu_work import tpu_work, working_ps
from tb_tpuprof.trace.trace import Trace
from tests.analysis.ops.test_async_starts import trace_of
from tests.analysis.ops.test_cost_sentences import OPS, ops_of
from tests.analysis.ops.test_labels import trace_of as linked_trace
from tests.builders import PS, DrawnEvent, DrawnPlane, Stats, build, drawing

MS = 10**9


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaDeviceSynchronize", "sync"),
        ("hipEventSynchronize", "sync"),
        ("aten::item", "sync"),
        ("aten::itemize", None),
        ("aten::_local_scalar_dense", "sync"),
        ("np.asarray(jax.Array)", "sync"),
        ("$x.py:3 block_until_ready", "sync"),
        ("cudaLaunchKernelExC", "launch"),
        ("hipExtModuleLaunchKernel", "launch"),
        ("cuLaunchKernelEx", "launch"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "loader"),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "workers"),
        ("EagerExecute", "eager"),
        ("EagerExecute: Mul", None),
        ("cuGraphLaunch", "graph"),
        ("CompiledFunctionBackward", "compiled"),
        ("Torch-Compiled Region: 0/1", "compiled"),
        ("## Call CompiledFxGraph x ##", "compiled"),
        ("f", None),
    ],
)
def test_kinds_of_framework_calls(name: str, kind: str | None) -> None:
    trace = build(
        [
            DrawnPlane(
                "/host:CPU",
                {"main": [DrawnEvent(name, 5, 7), DrawnEvent(name, 20, 9), DrawnEvent("z", 40, 1)]},
            )
        ]
    )
    assert framework_calls(trace) == (() if kind is None else (Call(kind, name, 2, 16),))


def test_calls_of_several_hosts_the_longest_first() -> None:
    parts = [
        [Call("sync", "b", 1, 5), Call("launch", "a", 2, 9)],
        [Call("launch", "c", 1, 5)],
        [Call("sync", "b", 4, 1), Call("eager", "b", 3, 6), Call("launch", "a", 1, 1)],
    ]
    assert sum_calls(parts) == (
        Call("launch", "a", 3, 10),
        Call("sync", "b", 5, 6),
        Call("eager", "b", 3, 6),
        Call("launch", "c", 1, 5),
    )


PEAKS = Roofs(1e12, (1e9, 0.0, 0.0, 0.0, 0.0), sources=("a sheet", "the trace"))


def excess(op: str, resource: str = "HBM", factor: float = 1.5, time_ps: float = 2e6) -> Excess:
    return Excess(op, "p(1)", resource, time_ps, time_ps * factor)


def test_notices_of_operations_above_a_peak() -> None:
    (one,) = excess_notices([excess("f")], PEAKS)
    assert (
        one.message
        == "For 1 operation more work was counted than the device can do in its time: `f` runs for 2.00 µs,"
        " but its counted HBM bytes take at least 3.00 µs at peak HBM bandwidth (1.00 GB/s). Its utilization"
        " is unknown and is not included in sums. Likely reason: a cache served part of the bytes, or the"
        " peak is too low (source: the trace)."
    )
    (several,) = excess_notices([excess(name, "Compute") for name in "abcde"], PEAKS)
    part = "runs for 2.00 µs, but its counted FLOPs take at least 3.00 µs at peak compute (1.00 TFLOP/s)"
    assert (
        several.message == "For 5 operations more work was counted than the device can do in their time:"
        f" `a` {part}; `b` {part}; `c` {part}; and 2 more. Their utilization is unknown and is not included"
        " in sums. Likely reason: fewer FLOPs ran than were counted (Winograd convolutions, masked"
        " attention), or the peak is too low (source: a sheet)."
    )
    (three,) = excess_notices([excess(name) for name in "abc"], PEAKS)
    assert " more;" not in three.message
    assert "and 1 more" not in three.message
    (worst,) = excess_notices([excess("a"), excess("a", factor=2.5), excess("b", factor=2)], PEAKS)
    assert worst.message.index("`a` runs for 2.00 µs") < worst.message.index("`b` runs")
    assert "take at least 5.00 µs" in worst.message
    assert "For 2 operations" in worst.message
    short, long = (
        excess_notices([excess("f", time_ps=time)], PEAKS)[0].message for time in (999_999, 1_000_000)
    )
    assert "it is too short to be measured accurately" in short
    (mixed,) = excess_notices(
        [excess("s", factor=9, time_ps=500), excess("a"), excess("b", "Compute"), excess("c", "Compute")],
        PEAKS,
    )
    assert mixed.message.index("`a` runs") < mixed.message.index("`b` runs") < mixed.message.index("`c` runs")
    assert "Likely reason: fewer FLOPs ran than were counted" in mixed.message
    assert "too short" not in long
    assert excess_notices([], PEAKS) == ()


def peaked(*ops: tuple[str, int, int, str]) -> Trace:
    """Operations (name, FLOPs, bytes, category) of 10 µs each, on a core of 1 TFLOP/s and 1 GB/s."""
    stats: dict[str, Stats] = {
        name: {
            "program_id": 7,
            "symbol_id": i + 1,
            "hlo_category": category,
            "flops": flops,
            "bytes_accessed": n_bytes,
        }
        for i, (name, flops, n_bytes, category) in enumerate(ops)
    }
    events = [DrawnEvent(name, 20 * i * PS, 10 * PS) for i, (name, *_) in enumerate(ops)]
    return build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, metadata_stats=stats)])


def test_operations_above_a_peak_the_largest_excess_first() -> None:
    """10 µs allow ten million FLOPs and 10,000 bytes; loops only run others."""
    trace = peaked(
        ("fits", 10_400_000, 10_400, "loop fusion"),
        ("bytes", 10, 12_000, "loop fusion"),
        ("flops", 20_000_000, 1, "dot"),
        ("loop", 90_000_000, 1, "while"),
        ("above", 1, 10_600, "copy"),
    )

    def found_with(peaks: Roofs) -> tuple[Excess, ...]:
        ops = hlo_ops(trace)
        return excesses(replace(ops, work=possible_work(ops.work, ops.work_ps, peaks)))

    found = found_with(PEAKS)
    assert [(one.op, one.resource) for one in found] == [
        ("flops", "Compute"),
        ("bytes", "HBM"),
        ("above", "HBM"),
    ]
    assert [one.factor for one in found] == pytest.approx([2, 1.2, 1.06])
    assert [one.time_ps for one in found] == [10 * PS] * 3
    assert found_with(Roofs(0.0, (0.0,) * 5)) == ()
    assert [one.op for one in found_with(Roofs(1e12, (0.0,) * 5))] == ["flops"]
    assert [one.op for one in found_with(Roofs(0.0, (1e9, 0, 0, 0, 0)))] == ["bytes", "above"]


def test_work_of_gpu_operations_is_that_of_their_instructions() -> None:
    ops = op_stats(linked_trace()).compiled
    rows = [(ops.name[i], ops.program[i], ops.flops[i], ops.n_bytes[i]) for i in range(len(ops))]
    (dot,) = [row for row in rows if row[:2] == ("dot.2", 7)]
    assert dot[3] == 3 * 4 * 8 * 16  # two operands and the result
    assert np.isnan([row[2:] for row in rows if row[0] == "gone.5" or row[1] == 9]).all()
    assert with_work(linked_trace(), OPS) is OPS


def test_copies_and_fills_among_operations() -> None:
    assert transfer_ps(ops_of(name=("a/b/MemcpyH2D", "gemm/x", "Memset"))) == (10 + 30) * MS


def test_hosts_are_summed() -> None:
    host, gpu = drawing("main  [Add:Add ]"), linked_trace()
    parts = [op_stats(host), op_stats(gpu), op_stats(gpu)]
    total = sum_op_stats(parts)
    assert total.host.name == ("Add",)
    assert total.compiled.busy_ps == 2 * parts[1].compiled.busy_ps > 0
    assert total.device.busy_ps == total.compiled.busy_ps
    assert sum_op_stats(parts[:1]) is parts[0]


SLICE, SLICE_DONE, LONE = "slice-start.2", "slice-done.2", "copy-start.9"


def halves() -> Trace:
    """Twice 14 and 7 in flight; a third done without its start, a start without its done."""
    common = {"program_id": 7}
    stats: dict[str, Stats] = {
        SLICE: {**common, "symbol_id": 1, "bytes_accessed": 500, "flops": 3},
        SLICE_DONE: {**common, "symbol_id": 2, "bytes_accessed": 200},
        LONE: {**common, "symbol_id": 3, "bytes_accessed": 900},
        "add": {**common, "symbol_id": 4, "bytes_accessed": 10, "flops": 7},
    }
    events = [
        (SLICE_DONE, 3, 2),
        (SLICE, 10, 1),
        (SLICE_DONE, 20, 4),
        (SLICE, 30, 0),
        (SLICE_DONE, 30, 7),
        (LONE, 50, 1),
        ("add", 60, 5),
    ]
    return trace_of(events, stats=stats)


def test_work_of_halves_counts_once_where_it_ends() -> None:
    trace = halves()
    names = [trace.strings[i] for i in trace.event_names.tolist()]
    work = tpu_work(trace)
    assert dict(zip(names, work.n_bytes.tolist(), strict=True)) == {
        SLICE_DONE: 200,
        SLICE: 0,
        LONE: 0,
        "add": 10,
    }
    assert dict(zip(names, work.flops.tolist(), strict=True)) == {SLICE_DONE: 3, SLICE: 0, LONE: 0, "add": 7}
    assert dict(zip(names, work.knows_bytes.tolist(), strict=True)) == {
        SLICE_DONE: True,
        SLICE: True,
        LONE: False,
        "add": True,
    }
    rows = np.arange(len(names))
    n = np.array([3, 2, 1, 1])
    own = np.array([13, 1, 1, 5])
    times = working_ps(trace, rows, rows, n, own).tolist()
    assert dict(zip(names, times, strict=True)) == {SLICE_DONE: 21 * 3 // 2, SLICE: 0, LONE: 1, "add": 5}
    assert async_ops(trace).is_orphan.sum() == 1


def stepped(n_steps: int = 3) -> Trace:
    """Steps of 100; in the i-th one i + 1 additions of 6 and an infeed of 9, and one more outside
    of steps.
    """
    stats: dict[str, Stats] = {
        "add": {
            "program_id": 7,
            "symbol_id": 1,
            "hlo_category": "loop fusion",
            "flops": 10,
            "bytes_accessed": 4,
        },
        "infeed": {
            "program_id": 7,
            "symbol_id": 2,
            "hlo_category": "infeed",
            "flops": 0,
            "bytes_accessed": 50,
        },
        "while": {
            "program_id": 7,
            "symbol_id": 3,
            "hlo_category": "while",
            "flops": 999,
            "bytes_accessed": 999,
        },
    }
    steps = [DrawnEvent(f"{5 + i}", 100 * i * PS, 100 * PS, {"group_id": 5 + i}) for i in range(n_steps)]
    ops = [
        DrawnEvent(name, (100 * i + start) * PS, duration * PS, {"group_id": 5 + i})
        for i in range(n_steps)
        for name, start, duration in (
            ("infeed", 2, 9),
            ("while", 15, 70),
            *(("add", 20 + 10 * k, 6) for k in range(i + 1)),
        )
    ]
    ops.append(DrawnEvent("add", (100 * n_steps + 5) * PS, 6 * PS))
    return build([DrawnPlane("/device:TPU:0", {"Steps": steps, "XLA Ops": ops}, metadata_stats=stats)])


def test_work_of_each_step() -> None:
    trace = stepped()
    found = step_work(trace)
    assert found.name == ("5", "6", "7")
    assert (found.time_ps / PS).tolist() == [100, 100, 100]
    assert (found.transfer_ps / PS).tolist() == [9, 9, 9]
    assert found.work.flops.tolist() == [10, 20, 30]
    events, op, time = occurrences(trace, hlo_ops(trace))
    assert len(events) == len(op) == len(time) == 3 + 3 + 6 + 1
    assert int(time.sum()) == trace.events["duration_ps"][events].sum()
    taken = found.taken(slice(1, 3))
    assert (taken.name, taken.work.flops.tolist()) == (("6", "7"), [20, 30])


def test_steps_that_hosts_have_in_common() -> None:
    three, four = step_work(stepped(3)), step_work(stepped(4))
    total = sum_step_work([three, four, three], [slice(1, 3), slice(1, 3), slice(0, 0)])
    assert total.name == ("6", "7")
    assert (total.time_ps / PS).tolist() == [200, 200]
    assert (total.transfer_ps / PS).tolist() == [18, 18]
    assert total.work.flops.tolist() == [40, 60]
    alone = sum_step_work([three, four], [slice(0, 0), slice(2, 4)])
    assert alone.work.flops.tolist() == [30, 40]
    assert len(sum_step_work([three, four], [slice(0, 0), slice(1, 1)])) == 0
    assert len(step_work(build([DrawnPlane("/device:TPU:0", {"XLA Ops": [DrawnEvent("x", 0, 1)]})]))) == 0


def test_operations_of_two_threads() -> None:
    """The span of each line is from its first operation to its last one's end, whichever that is."""
    trace = drawing("one  [Add:Add          ]  [x ]\none   [Mul:Mul]\ntwo       [Add:Add]     [Mul:Mul ]")
    ops = host_ops(trace)
    rows = {
        name: (int(n), int(t) // PS, int(s) // PS)
        for name, n, t, s in zip(ops.name, ops.n_occurrences, ops.time_ps, ops.self_ps, strict=True)
    }
    assert rows == {"Add": (2, 19 + 9, 10 + 9), "Mul": (2, 9 + 10, 9 + 10)}
    assert ops.span_ps == (19 + 24) * PS
    assert replace(ops, span_ps=0).idle_ps == 0
