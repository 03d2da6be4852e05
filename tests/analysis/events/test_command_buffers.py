from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.events.command_buffers import (
    _between,
    _launches_by_names,
    _Slot,
    _with_memsets,
    graph_kernels,
    match,
    named_events,
)
from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.ingest.opening import open_trace
from tests.builders import DrawnEvent, DrawnPlane, Stats, build, drawing
from tests.ingest.hlo_protos import array, computation, instruction, proto

DATA = Path(__file__).parents[2] / "data" / "gpu"


def slots(*words: str) -> list[_Slot]:
    """A schedule: fusions by their name, library calls as `call`, copies as `copy`; the row is the place."""
    return [
        _Slot(i, {"call": "custom-call", "copy": "copy"}.get(word, "fusion"), word)
        for i, word in enumerate(words)
    ]


def test_kernels_go_to_the_instructions_of_the_schedule_in_order() -> None:
    schedule = slots("call", "gemm_fusion_dot", "copy", "wrapped_add", "call", "wrapped_add")
    kernels = [
        "Memset",
        "nvjet_a",
        "gemm_fusion_dot_11",
        "MemcpyD2D",
        "wrapped_add_3",
        "nvjet_b",
        "splitKreduce",
        "wrapped_add_3",
    ]
    assert match(kernels, schedule) == [0, 0, 1, 2, 3, 4, 4, 5]


def test_a_graph_may_begin_anywhere_in_the_schedule() -> None:
    assert match(["nvjet", "wrapped_add_1"], slots("loop_fusion", "call", "wrapped_add")) == [1, 2]


def test_what_fits_in_several_ways_is_left_alone() -> None:
    assert match(["wrapped_add_1"], slots("wrapped_add", "call", "wrapped_add")) == []
    # Two calls and three kernels: one of them launched two, but which?
    assert match(["a", "b", "c", "loop_fusion"], slots("call", "call", "loop_fusion")) == []


def test_what_does_not_fit_is_left_alone() -> None:
    assert match(["loop_fusion_1", "input_fusion"], slots("loop_fusion", "wrapped_add", "input_fusion")) == []
    assert match(["loop_fusion", "nvjet", "input_fusion"], slots("loop_fusion", "input_fusion")) == []
    assert match([], slots("call")) == []


def test_a_large_hostile_graph_takes_no_time() -> None:
    assert match(["loop_fusion_1"] * 30_000, slots(*["loop_fusion"] * 30_000)) == list(range(30_000))


def test_each_kernel_of_a_real_command_buffer_names_its_instruction() -> None:
    """An H100's: by hand, eight launches of 11 matrix products (with a memset each), 15 fusions of XLA's."""
    trace = open_trace(str(DATA / "jax_sync1.xplane.pb.gz"))
    found = graph_kernels(trace)
    (program,) = np.unique(found.program).tolist()
    module = trace.programs.module(program)
    assert module is not None
    assert (found.instruction >= 0).all()
    rows, count = np.unique(found.instruction, return_counts=True)
    calls = module.has_opcode(("custom-call",))[rows]
    assert count[calls].tolist() == [16] * 11
    assert count[~calls].tolist() == [8] * 15
    kernel = [
        trace.strings[i] for i in trace.metadata["name"][trace.events["metadata"][found.events]].tolist()
    ]
    is_library = np.array([name.startswith(("nvjet", "Memset")) for name in kernel])
    assert (is_library == module.has_opcode(("custom-call",))[found.instruction]).all()
    links = hlo_links(trace)
    assert links.n_unknown == 0
    assert {op.path[0] for op in links.ops} == {"command_buffer_1"}


@pytest.mark.parametrize(
    ("kernels", "words", "is_last", "rows"),
    [
        (["Memset", "a", "b"], ["call"], False, [-1, 0, 0]),
        (["a", "b"], ["call", "call"], False, [0, 1]),
        (["a", "b", "c"], ["call", "call"], False, None),
        (["a"], ["call", "call"], False, []),
        (["a"], ["call", "call"], True, [0]),  # a graph may end before the last calls
        (["a", "b"], ["call", "call", "call"], True, [0, 1]),
        (["a"], [], False, []),
        (["a"], [], True, []),
        (["memcpyD2D", "a"], ["copy", "call"], False, [0, 1]),
        (["MemcpyD2D", "a"], ["call"], False, [-1, 0]),
        (["MemcpyD2D", "MemcpyD2D", "a"], ["copy", "call"], False, [-1, -1, 1]),
        (["Memset"], [], False, [-1]),
        (["Memset"], ["call"], True, []),
    ],
)
def test_kernels_between_two_fusions(
    kernels: list[str], words: list[str], is_last: bool, rows: list[int] | None
) -> None:
    assert _between(kernels, slots(*words), is_last) == rows


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([-1, 0, -1, 2, -1], [0, 0, 2, 2, 2]),
        ([-1, -1, 3], [3, 3, 3]),
        ([0, -1, -1], [0, 0, 0]),
        ([-1], []),
        ([], []),
    ],
)
def test_a_memset_prepares_the_next_instruction(rows: list[int], expected: list[int]) -> None:
    assert _with_memsets(rows) == expected


@pytest.mark.parametrize(
    ("kernels", "words", "rows"),
    [
        (["f_1", "f_2"], ["f", "f", "f"], []),  # the first two or the last two
        (["f_1", "f_2", "f_3"], ["f", "f", "f"], [0, 1, 2]),
        (["g_1", "f_2"], ["f", "g", "f"], [1, 2]),
        (["lib"], ["call", "call", "f"], [0]),  # of calls in a row the first one counts
        (["lib", "f"], ["call", "call", "f"], [1, 2]),
        (["lib", "f"], ["f", "call", "f"], [1, 2]),
        (["f", "lib"], ["f", "call"], [0, 1]),
        (["f", "lib"], ["f"], []),
        (["f", "MemcpyD2D"], ["f", "copy"], [0, 1]),
        (["f", "MemcpyD2D"], ["f"], [0, 0]),
        (["f"], ["g"], []),
        (["wrapped_add"], ["wrapped_add", "call"], [0]),
    ],
)
def test_graphs_in_a_schedule(kernels: list[str], words: list[str], rows: list[int]) -> None:
    assert match(kernels, slots(*words)) == rows


@pytest.mark.parametrize("seed", range(5))
def test_launches_with_equal_names_are_one_group(seed: int) -> None:
    """Compared with a dictionary of tuples."""
    draw = np.random.default_rng(seed)
    launches = [draw.integers(0, 2, draw.integers(1, 4)).tolist() for _ in range(20)]
    bounds = np.cumsum([0, *map(len, launches)])
    expected: dict[tuple[int, ...], list[list[int]]] = {}
    for first, names in zip(bounds.tolist(), launches, strict=False):
        expected.setdefault(tuple(names), []).append(list(range(first, first + len(names))))
    found = _launches_by_names(np.array([name for one in launches for name in one]), bounds)
    assert sorted(group.tolist() for group in found) == sorted(expected.values())


def test_the_first_operation_that_an_event_names_counts() -> None:
    events, text = named_events(drawing("main  [a ][b ][c ]", {"a": {"hlo_op": "x"}, "c": {"hlo_op": "y"}}))
    assert events.tolist() == [0, 2]
    assert text[0] != text[1]


BLOCK = array(8)


def launched(*kernels: tuple[str, int, Stats]) -> DrawnPlane:
    """A GPU's kernels (name, start, stats); without own stats, of launch 1 of the graph of program 7."""
    usual: Stats = {"hlo_op": "command_buffer_3", "program_id": 7, "correlation_id": 1}
    events = [DrawnEvent(name, start, 5, {**usual, **stats}) for name, start, stats in kernels]
    return DrawnPlane("/device:GPU:0", {"Stream #1": sorted(events, key=lambda one: one.start_ps)})


def test_kernels_of_two_launches_of_a_drawn_graph() -> None:
    """A schedule of a fusion, an addition (no kernel of its own), a call and a fusion; a launch whose names
    do not fit, and kernels without an id or of another program stay unknown.
    """
    entry = [
        instruction(1, "parameter", BLOCK),
        {**instruction(2, "fusion", BLOCK, [1], f38=(20,)), 1: "wrapped_exp.2"},
        instruction(3, "add", BLOCK, [2, 1]),
        instruction(4, "custom-call", BLOCK, [3]),
        {**instruction(5, "fusion", BLOCK, [4], f38=(20,)), 1: "loop_fusion.5"},
    ]
    body = [instruction(11, "parameter", BLOCK), instruction(12, "exponential", BLOCK, [11])]
    hlo = proto(
        [computation(20, "body", body, 12), computation(1, "main", entry, 5)],
        f7={1: [{1: 1, 2: {1: (1, 2, 3, 4, 5)}}]},
    )
    metadata = DrawnPlane(
        "/host:metadata",
        {"x": [DrawnEvent(f"module({i})", 0, 0) for i in range(8)]},
        metadata_stats={"module(7)": {"Hlo Proto": hlo}},
    )
    second, odd = {"correlation_id": 2}, {"correlation_id": 3}
    plane = launched(
        ("wrapped_exp_1", 10, {}), ("gemm", 20, {}), ("loop_fusion_9", 30, {}),
        ("gemm", 120, second), ("loop_fusion_9", 130, second), ("wrapped_exp_1", 110, second),
        ("loop_fusion_9", 210, odd), ("wrapped_exp_1", 220, odd),
        ("gemm", 300, {"correlation_id": -1}), ("gemm", 310, {"program_id": 8}), ("gemm", 320, {"hlo_op": "dot.3"}),
    )  # fmt: skip
    trace = build([metadata, plane])
    found = graph_kernels(trace)
    module = trace.programs.module(7)
    assert module is not None
    named = {
        int(trace.events["start_ps"][event]): module.name(row) if row >= 0 else ""
        for event, row in zip(found.events.tolist(), found.instruction.tolist(), strict=True)
    }
    assert named == {
        10: "wrapped_exp.2", 20: "custom-call.4", 30: "loop_fusion.5", 110: "wrapped_exp.2", 120: "custom-call.4",
        130: "loop_fusion.5", 210: "", 220: "", 310: "",
    }  # fmt: skip
    assert found.program.tolist() == [7] * 8 + [8]
    links = hlo_links(trace)
    texts = {links.ops[op].path for op in links.op.tolist()}
    assert ("command_buffer_3", "custom-call.4") in texts
    assert ("command_buffer_3",) in texts
    assert ("dot.3",) in texts


def test_kernels_of_graphs_that_name_their_instruction_themselves() -> None:
    """Where a graph was created during the capture, XLA names each kernel's instruction: three unlike graphs
    of two programs, whose nodes have the same numbers.
    """
    kernels: list[tuple[str, int, Stats]] = []
    for start, (graph, node, program, op) in enumerate(
        ((4, 1, 7, "dot.3"), (4, 2, 7, "fusion.1"), (5, 1, 7, "fusion.1"), (9, 1, 8, "dot.3"), (9, 2, 8, ""))
    ):
        stats: Stats = {"cuda_graph_id": graph, "cuda_graph_node_id": node, "program_id": program}
        kernels.append((f"kernel_{graph}_{node}", 10 * start, {**stats, **({"hlo_op": op} if op else {})}))
    links = hlo_links(build([launched(*kernels)]))
    named = {(op.program_id, op.name): int((links.op == i).sum()) for i, op in enumerate(links.ops)}
    assert named == {(7, "dot.3"): 1, (7, "fusion.1"): 2, (8, "dot.3"): 1, (8, "command_buffer_3"): 1}
