"""Operations of TPU programs as columns: sums over cores and hosts, on two cores and a SparseCore drawn by
hand.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.work import ProgramCosts
from tb_tpuprof.analysis.ops.category_sentence import op_categories
from tb_tpuprof.analysis.ops.hlo import hlo_ops, merge_hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps, Words, program_titles, words_by_id, words_of
from tb_tpuprof.analysis.ops.hlo_times import NO_TIMES, ProgramTimes
from tb_tpuprof.analysis.ops.hlo_tpu import tpu_occurrences
from tb_tpuprof.analysis.ops.tpu import tpu_ops
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, Stats, build

WHILE, DOT, ADD, CALL = "while.1", "dot.2", "add.3", "custom-call.4"


def stats(program: int, symbol: int, category: str, **more: int | str) -> Stats:
    return {"program_id": program, "symbol_id": symbol, "hlo_category": category, **more}


METADATA: dict[str, Stats] = {
    WHILE: stats(7, 1, "while", flops=10_000, bytes_accessed=90, tf_op="loop", source="a.py:1"),
    DOT: stats(
        7,
        2,
        "convolution fusion",
        flops=100,
        model_flops=80,
        bytes_accessed=30,
        tf_op="s/dot:Dot",
        source="a.py:2",
    ),
    ADD: stats(8, 3, "loop fusion", flops=5, bytes_accessed=7),
    CALL: stats(8, 4, "custom-call", flops=1, bytes_accessed=2),
    "no symbol": {"program_id": 7},
    "no program": {"symbol_id": 9},
}


def core(shift: int, n: int) -> list[DrawnEvent]:
    """A loop with two products, then additions and a custom call that states its own work."""
    return [
        DrawnEvent(WHILE, shift, 100),
        DrawnEvent(DOT, shift + 10, 20, {"dma_stall_duration_ps": 3, "Time Scale Multiplier": 1.5}),
        DrawnEvent(DOT, shift + 50, 40, {"dma_stall_duration_ps": 4}),
        *(DrawnEvent(ADD, shift + 110 + 10 * i, 6) for i in range(n)),
        DrawnEvent(CALL, shift + 200, 30, {"flops": 1000 * n, "bytes_accessed": 50}),
        DrawnEvent("no symbol", shift + 240, 5),
        DrawnEvent("no program", shift + 250, 5),
    ]


def trace_of(n_first: int = 3, n_second: int = 1) -> Trace:
    sparse = {"Sparse Core Ops": [DrawnEvent(ADD, 20, 11)], "XLA Ops": [DrawnEvent(DOT, 0, 500)]}
    return build(
        [
            DrawnPlane(
                "/device:TPU:0",
                {"Steps": [DrawnEvent("0", 0, 300)], "XLA Ops": core(10, n_first)},
                {},
                METADATA,
            ),
            DrawnPlane("/device:TPU:1", {"XLA Ops": core(1000, n_second)}, {}, METADATA),
            DrawnPlane("/device:TPU:0 SparseCore 0", sparse, {}, METADATA),
        ]
    )


def rows(ops: HloOps) -> dict[tuple[int, str, str], tuple[int, ...]]:
    """(occurrences, time, own time, normalized, stalled) by program, name and core."""
    columns = (ops.n_occurrences, ops.time_ps, ops.self_ps, ops.normalized_ps, ops.stall_ps)
    return {
        (int(ops.program[i]), ops.name[i], ops.core[i]): tuple(int(column[i]) for column in columns)
        for i in range(len(ops))
    }


def test_times_of_all_cores() -> None:
    ops = hlo_ops(trace_of())
    assert rows(ops) == {
        (7, WHILE, "TensorCore"): (2, 200, 80, 200, 0),
        (7, DOT, "TensorCore"): (4, 120, 120, 140, 14),
        (8, ADD, "TensorCore"): (4, 24, 24, 24, 0),
        (8, CALL, "TensorCore"): (2, 60, 60, 60, 0),
        (8, ADD, "SparseCore"): (1, 11, 11, 11, 0),
    }
    # Step 0 to 300 on the first core, 1000 to 1255 on the second; a SparseCore's time is beside theirs.
    assert (ops.span_ps, ops.n_devices, ops.kind) == (300 + 255, 2, "TPU")
    assert (ops.busy_ps, ops.idle_ps, ops.total_ps) == (284, 271, 555)
    assert replace(ops, kind="CPU").total_ps == 284
    full = replace(ops, span_ps=200)
    assert (full.idle_ps, full.total_ps) == (0, 284)
    assert ops.programs == {7: "7", 8: "8"}


def test_work_of_all_occurrences() -> None:
    ops = hlo_ops(trace_of())
    at = {name: ops.find(program, name) for program, name in ((7, WHILE), (7, DOT), (8, ADD), (8, CALL))}
    assert {
        name: (ops.work.flops[row], ops.work.n_bytes[row]) for name, row in at.items() if name != CALL
    } == {
        WHILE: (20_000, 180),
        DOT: (400, 120),
        ADD: (20, 28),
    }
    assert ops.work.model_flops[at[DOT]] == 320
    assert [ops.provenance[at[name]] for name in (WHILE, DOT, CALL)] == ["loop", "s/dot:Dot", ""]
    assert ops.source[at[DOT]] == "a.py:2"
    assert ops.is_container[at[WHILE]]
    assert int(ops.is_container.sum()) == 1
    assert ops.find(8, DOT) == ops.find(7, "gone") == -1


def test_custom_calls_state_their_work_in_each_event() -> None:
    """Twice on one core: 1000 and 2500 FLOPs, 50 and 70 bytes of HBM. A call whose events state none keeps
    its name's.
    """
    metadata = {
        name: stats(8, i + 1, "custom-call", flops=1, bytes_accessed=2) for i, name in enumerate(("a", "b"))
    }
    metadata["c"] = stats(8, 3, "loop fusion", flops=3, bytes_accessed=4)
    events = [
        DrawnEvent("a", 0, 5, {"flops": 1000, "bytes_accessed": 50}),
        DrawnEvent("b", 10, 5),
        DrawnEvent("a", 20, 5, {"flops": 2500, "bytes_accessed": 70}),
        DrawnEvent("c", 30, 5, {"flops": 9999, "bytes_accessed": 9999}),  # no custom call
    ]
    ops = hlo_ops(build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, {}, metadata)]))
    rows = [ops.find(8, name) for name in "abc"]
    assert ops.work.flops[rows].tolist() == ops.work.model_flops[rows].tolist() == [3500, 1, 3]
    assert ops.work.n_bytes[rows].tolist() == [120, 2, 4]
    assert ops.work.space_bytes[0, rows].tolist() == [120, 2, 4]
    assert not ops.work.space_bytes[1:, rows].any()


def test_custom_calls_of_all_cores_state_their_work() -> None:
    """3000 FLOPs on the first core and 1000 on the second, 50 bytes on each; a core has names of its own."""
    ops = hlo_ops(trace_of(3, 1))
    row = ops.find(8, CALL)
    assert (ops.work.flops[row], ops.work.n_bytes[row], ops.work.space_bytes[0, row]) == (4000, 100, 100)
    merged = merge_hlo_ops([ops, ops])
    assert merged.work.flops[merged.find(8, CALL)] == 8000


def test_the_same_operations_as_those_of_the_framework_s_page() -> None:
    """Without SparseCores; by metadata row."""
    ops = tpu_ops(trace_of())
    found = {
        (program, name): (int(n), int(time), int(own), flops)
        for program, name, n, time, own, flops in zip(
            ops.program,
            ops.name,
            ops.n_occurrences,
            ops.time_ps,
            ops.self_ps,
            ops.flops.tolist(),
            strict=True,
        )
    }
    assert found == {
        (7, WHILE): (2, 200, 80, 20_000.0),
        (7, DOT): (4, 120, 120, 400.0),
        (8, ADD): (4, 24, 24, 20.0),
        (8, CALL): (2, 60, 60, 2.0),
    }
    assert ops.span_ps == 555
    assert dict(zip(ops.name, ops.type, strict=True))[DOT] == "convolution fusion"


def test_occurrences_name_their_operation() -> None:
    trace = trace_of()
    ops, (events, op) = hlo_ops(trace), tpu_occurrences(trace)
    names = [trace.strings[i] for i in trace.event_names[trace.events["metadata"][events]].tolist()]
    assert names == [ops.name[row] for row in op.tolist()]
    assert len(events) == 12
    assert [ops.core[row] for row in op.tolist()] == ["TensorCore"] * 12


def test_hosts_are_summed_by_program_and_name() -> None:
    """The first host has no additions; texts, instructions and hosts are those of the first host that has
    them.
    """
    none = build([DrawnPlane("/device:TPU:0", {"Steps": [DrawnEvent("0", 0, 40)]})])
    first = hlo_ops(trace_of(0, 0))
    parts = [hlo_ops(none), first.kept(~first.is_sparse), hlo_ops(trace_of(2, 2)), hlo_ops(trace_of(5, 0))]
    parts[2] = replace(parts[2], thread_ps=parts[2].thread_ps + 6, energy_j=parts[2].energy_j + 0.5)
    parts[3] = replace(parts[3], thread_ps=parts[3].thread_ps + 8)
    merged = merge_hlo_ops(parts)
    names = [(int(program), merged.name[i]) for i, program in enumerate(merged.program.tolist())]
    assert sorted(names) == sorted([(7, WHILE), (7, DOT), (8, CALL), (8, ADD)])
    at = dict(zip([name for _, name in names], range(4), strict=True))
    assert merged.n_occurrences[at[DOT]] == 12
    assert merged.n_occurrences[at[ADD]] == sum(
        int(p.n_occurrences[[p.name[i] == ADD for i in range(len(p))]].sum()) for p in parts if len(p)
    )
    assert merged.self_ps[at[WHILE]] == 3 * 80
    assert merged.work.flops[at[DOT]] == 1200
    assert (merged.span_ps, merged.n_devices) == (
        sum(p.span_ps for p in parts),
        sum(p.n_devices for p in parts),
    )
    assert [int(merged.host[at[name]]) for name in (WHILE, ADD)] == [1, 2]
    assert merged.thread_ps[at[DOT]] == -1  # unknown on the first host
    assert merged.energy_j[at[DOT]] == 0.5
    assert merge_hlo_ops(parts[:1]) is parts[0]
    assert merge_hlo_ops([parts[0], parts[0]]) is parts[0]


def test_operations_by_time_and_then_by_name() -> None:
    ops = hlo_ops(trace_of())
    tied = replace(ops, self_ps=np.array([5, 9, 5, 1, 5]))
    names = [ops.name[row] for row in tied.by_self_time.tolist()]
    by_hand = sorted(range(5), key=lambda row: (-int(tied.self_ps[row]), ops.name[row]))
    assert names == [ops.name[row] for row in by_hand]
    assert ops.kept(np.ones(5, np.bool_)) is ops
    kept = ops.kept(np.array([False, True, False, True, False]))
    assert [kept.name[i] for i in range(2)] == [ops.name[1], ops.name[3]]


def test_columns_of_texts() -> None:
    words = words_of(["b", "a", "b", ""])
    assert (words.codes.tolist(), words.strings) == ([0, 1, 0, 2], ("b", "a", ""))
    assert words.is_in(("b", "")).tolist() == [True, False, True, True]
    assert Words(np.empty(0, np.int64), ()).is_in(("a",)).tolist() == []
    fewer = words.taken(np.array([3, 1, 3])).used()
    assert (fewer.codes.tolist(), fewer.strings) == ([1, 0, 1], ("a", ""))
    by_id = words_by_id(np.array([2, -1, 0, 2]), Strings.of([b"x", b"y", b"z"]))
    assert [by_id[i] for i in range(len(by_id))] == ["z", "", "x", "z"]


def test_programs_without_hlo_are_called_by_their_unsigned_id() -> None:
    trace = trace_of()
    assert program_titles(trace, ProgramCosts(trace), [5, -2]) == {5: "5", -2: "18446744073709551614"}


@pytest.mark.parametrize(
    ("row", "expected"), [(1, (0, 0)), (2, (20, 3)), (3, (0, 0)), (5, (50, 1)), (6, (0, 0))]
)
def test_times_of_an_instruction(row: int, expected: tuple[int, int]) -> None:
    times = ProgramTimes(np.array([2, 5]), np.array([20, 50]), np.array([3, 1]))
    assert times.at(row) == expected
    assert NO_TIMES.at(row) == (0, 0)


def test_categories_leave_sparse_cores_out() -> None:
    found = op_categories(hlo_ops(trace_of()), 5)
    assert {name: time for name, time in found.times.items() if time} == {
        "while": 80,
        "convolution fusion": 120,
        "loop fusion": 24,
        "custom-call": 60,
    }
    assert (found.offload_ps, found.n_devices, found.kind) == (5, 2, "TPU")
    without = op_categories(hlo_ops(build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("a", 0, 1)]})])), 0)
    assert without.busy_ps == 0
