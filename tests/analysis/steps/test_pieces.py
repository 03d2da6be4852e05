"""Pieces of PyTorch's steps on a trace whose every stretch is written down, the graph of causes, and groups
of odd files.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.forest import NO_LABEL, Forest
from tb_tpuprof.analysis.steps.pieces import Pieces, joined, no_pieces, non_overlapping
from tb_tpuprof.analysis.steps.pytorch import late_notice
from tb_tpuprof.analysis.steps.pytorch_loader import loader_wait
from tb_tpuprof.analysis.steps.steps import step_pieces, steps
from tb_tpuprof.trace.trace import Trace
from tests.analysis.steps.step_rows import Row, rows_of
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing, event

FETCH = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
INNER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def pytorch_trace() -> Trace:
    """Step 5 fetches a batch (a fetch inside of another, the user's functions in it), computes on two threads
    and copies; the function `next_batch` launches a kernel in it, so it is the model, in step 6 it is not, so
    it loads.
    """

    def marker(start: int, length: int, number: int) -> DrawnEvent:
        return event("ProfilerStep", start, length, _r=1, step_num=number)

    main = [
        marker(10, 100, 5),
        event(FETCH, 15, 40),
        event("dataset.py(12): __getitem__", 20, 20),
        event(INNER, 22, 8),
        event("dataset.py(30): decode", 23, 5),
        event("aten::mm", 60, 20),
        event("cudaLaunchKernel", 65, 3, correlation_id=1),
        event("cudaMemcpyAsync", 75, 2, correlation_id=3),
        event("gen.py(8): next_batch", 84, 20),
        event("cudaLaunchKernel", 88, 2, correlation_id=2),
        event("model.py(9): head", 92, 6),
        marker(110, 60, 6),
        event("gen.py(8): next_batch", 115, 30),
        event("sleep_lib.py(3): nap", 120, 9),
        event("<built-in function sleep>", 121, 7),
        event("aten::add", 150, 9),
        event("cudaLaunchKernel", 152, 3, correlation_id=4),
        marker(170, 30, 7),
        event("aten::add", 172, 9),
        event("cudaLaunchKernel", 175, 3, correlation_id=5),
    ]
    autograd = [
        event("MmBackward0", 70, 25),
        event("cudaLaunchKernel", 80, 4, correlation_id=6),
        event("Other", 120, 10),
    ]
    stream = [
        event("gemm", 70, 8, correlation_id=1),
        event("MemcpyDtoH", 79, 5, correlation_id=3),
        event("gemm", 90, 10, correlation_id=2),
        event("gemm_half", 100, 20, correlation_id=6),
        event("add", 158, 20, correlation_id=4),
        event("add", 190, 5, correlation_id=5),
    ]
    lines = {
        "idle": [event("idle", 0, 1)],
        "main": main,
        "autograd": autograd,
        "later": [event("x", 0, 1), event(FETCH, 60, 9)],
    }
    return build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:GPU:0", {"s": stream})], host="h")


def test_steps_of_pytorch_are_charged_to_what_runs_in_them() -> None:
    found = steps(pytorch_trace())
    assert found.name == ("ProfilerStep 5", "ProfilerStep 6", "ProfilerStep 7")
    assert (found.duration_ps // PS).tolist() == [100, 60, 30]
    expected = np.zeros((3, N_CLASSES), np.int64)
    expected[
        0,
        [
            TimeClass.HOST_WAIT_INPUT,
            TimeClass.DEVICE_TO_HOST,
            TimeClass.DEVICE_COMPUTE_32,
            TimeClass.DEVICE_COMPUTE_16,
        ],
    ] = 40, 5, 18, 10
    expected[1, [TimeClass.DEVICE_COMPUTE_32, TimeClass.DEVICE_COMPUTE_16]] = 12, 10
    expected[2, TimeClass.DEVICE_COMPUTE_32] = 8 + 5
    expected[:, 0] = [100 - 73, 60 - 22, 30 - 13]
    assert (found.class_ps // PS).tolist() == expected.tolist()
    assert [(wait.name, wait.kind, (wait.time_ps // PS).tolist()) for wait in found.waits] == [
        (FETCH, TimeClass.HOST_WAIT_LOADER, [40, 0, 0])
    ]


def test_pieces_of_pytorch_s_steps() -> None:
    trace = pytorch_trace()
    _, pieces = step_pieces(trace)
    assert pieces is not None
    waits, none, loads, computes, python = (
        "HOST_WAIT_INPUT",
        "UNKNOWN",
        "HOST_WAIT_LOADER",
        "HOST_COMPUTE",
        "HOST_PYTHON",
    )
    getitem, decode, batch = "dataset.py(12): __getitem__", "dataset.py(30): decode", "gen.py(8): next_batch"
    launch, copy, nap, asleep = (
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
        "sleep_lib.py(3): nap",
        "<built-in function sleep>",
    )
    loader: list[Row] = [
        (0, start, end, waits, waits, named, inner)
        for start, end, named, inner in (
            (15, 20, FETCH, FETCH),
            (20, 22, FETCH, getitem),
            (22, 23, FETCH, INNER),
            (23, 28, decode, decode),
            (28, 30, FETCH, INNER),
            (30, 40, FETCH, getitem),
            (40, 55, FETCH, FETCH),
        )
    ]
    own: list[Row] = [
        (step, start, end, none, klass, named, inner)
        for step, start, end, klass, named, inner in (
            (0, 60, 65, computes, "aten::mm", "aten::mm"),
            (0, 65, 68, computes, launch, launch),
            (0, 68, 75, computes, "aten::mm", "aten::mm"),
            (0, 75, 77, computes, copy, copy),
            (0, 77, 80, computes, "aten::mm", "aten::mm"),
            (0, 84, 88, python, batch, batch),
            (0, 88, 90, computes, batch, launch),
            (0, 90, 92, python, batch, batch),
            (0, 92, 98, python, batch, "model.py(9): head"),
            (0, 98, 104, python, batch, batch),
            (1, 115, 120, loads, batch, batch),
            (1, 120, 121, loads, batch, nap),
            (1, 121, 128, loads, batch, asleep),
            (1, 128, 129, loads, batch, nap),
            (1, 129, 145, loads, batch, batch),
            (1, 150, 152, computes, "aten::add", "aten::add"),
            (1, 152, 155, computes, launch, launch),
            (1, 155, 159, computes, "aten::add", "aten::add"),
            (2, 172, 175, computes, "aten::add", "aten::add"),
            (2, 175, 178, computes, launch, launch),
            (2, 178, 181, computes, "aten::add", "aten::add"),
        )
    ]
    backward: list[Row] = [
        (0, start, end, none, computes, "", inner)
        for start, end, inner in ((70, 80, "MmBackward0"), (80, 84, launch), (84, 95, "MmBackward0"))
    ]
    full, half = "DEVICE_COMPUTE_32", "DEVICE_COMPUTE_16"
    device: list[Row] = [
        (step, start, end, klass, klass, "", name)
        for step, start, end, klass, name in (
            (0, 70, 78, full, "gemm"),
            (0, 79, 84, "DEVICE_TO_HOST", copy),
            (0, 90, 100, full, "gemm"),
            (0, 100, 110, half, "gemm_half"),
            (1, 110, 120, half, "gemm_half"),
            (1, 158, 170, full, "add"),
            (2, 170, 178, full, "add"),
            (2, 190, 195, full, "add"),
        )
    ]
    assert rows_of(trace, pieces) == sorted([*loader, *own, *backward, *device])


def test_the_loader_of_the_shown_steps() -> None:
    """40 of 190 in one of three steps; with a kernel from 30 to 45 in it 15 of them are hidden."""
    wait = loader_wait(pytorch_trace())
    assert wait is not None
    assert (wait.name, wait.n_steps, wait.total_ps // PS, wait.hidden_ps // PS, wait.steps_ps // PS) == (
        FETCH,
        1,
        40,
        0,
        190,
    )
    assert (wait.fraction, wait.is_in_process) == (pytest.approx(40 / 190), True)
    main = [
        event("ProfilerStep", 0, 100, _r=1, step_num=0),
        event(FETCH, 10, 40),
        event("dataloader.py(9): __next__", 60, 10),
        event("l", 90, 5, correlation_id=1),
        event("ProfilerStep", 100, 50, _r=1, step_num=1),
        event("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 95, 50),
        event("m", 146, 1, correlation_id=2),
    ]
    stream = [
        event("k", 30, 15, correlation_id=1),
        event("MemcpyHtoD", 45, 3, correlation_id=1),
        event("k", 120, 10, correlation_id=2),
    ]
    trace = build(
        [
            DrawnPlane("/host:CPU", {"main": sorted(main, key=lambda one: (one.start_ps, -one.duration_ps))}),
            DrawnPlane("/device:GPU:0", {"s": stream}),
        ]
    )
    both = loader_wait(trace)
    assert both is not None
    assert (both.n_steps, both.total_ps // PS, both.hidden_ps // PS, both.steps_ps // PS) == (
        2,
        40 + 50,
        15 + 10,
        150,
    )
    assert both.name.startswith("enumerate(DataLoader)#_Multi")
    assert loader_wait(drawing("main  [x]")) is None


@pytest.mark.parametrize(("length", "is_late"), [(18, False), (19, True), (30, True)])
def test_devices_that_work_for_a_tenth_of_the_steps_after_them_are_late(length: int, is_late: bool) -> None:
    """Steps of 190; a kernel of theirs runs from 191 on, after the last step's end at 200 for at least
    `length`.
    """
    trace = pytorch_trace()
    host = [
        DrawnEvent("ProfilerStep", start * PS, size * PS, {"_r": 1, "step_num": i})
        for i, (start, size) in enumerate(((10, 100), (110, 60), (170, 30)))
    ]
    launches = [event("l", 175, 3, correlation_id=1)]
    stream = [
        event("k", 191, 9 + length, correlation_id=1),
        event("k", 195, 7, correlation_id=1),
        event("stray", 400, 500, correlation_id=9),
    ]
    late = build(
        [DrawnPlane("/host:CPU", {"main": [*host, *launches]}), DrawnPlane("/device:GPU:0", {"s": stream})]
    )
    notices = late_notice(late)
    assert [f"for {length:.1f} µs after" in notice.message for notice in notices] == [True] * is_late
    assert late_notice(trace) == ()
    assert late_notice(drawing("main  [x]")) == ()


def forest_of(n: int, edges: list[tuple[int, int]]) -> Forest:
    ordered = sorted(edges, key=lambda edge: edge[0])
    source, target = (np.array([edge[side] for edge in ordered], np.int64) for side in (0, 1))
    offsets = np.append(0, np.cumsum(np.bincount(source, minlength=n))).astype(np.int64)
    return Forest(10 * np.arange(n), np.arange(n, dtype=np.int32), offsets, target, source)


@pytest.mark.parametrize("seed", range(10))
def test_labels_spread_along_random_edges(seed: int) -> None:
    """The smallest label that reaches a node wins; a label that a node has already is only replaced by a
    smaller one.
    """
    draw, n = np.random.default_rng(seed), 12
    edges = [tuple(edge) for edge in draw.integers(0, n, (int(draw.integers(0, 22)), 2)).tolist()]
    tree = forest_of(n, edges)
    reach = [{i} for i in range(n)]
    for _ in range(n):
        for a, b in edges:
            for nodes in reach:
                if a in nodes:
                    nodes.add(b)
    labels, expected = tree.no_labels(), [None] * n
    assert labels.tolist() == [NO_LABEL] * n
    for first in (0, 5):
        roots = draw.choice(n, 3, replace=False)
        given = first + draw.permutation(3)
        labels = tree.claim(given.astype(np.int64), 10 * roots, labels)
        for root, label in sorted(zip(roots.tolist(), given.tolist(), strict=True), key=lambda pair: pair[1]):
            for node in reach[root] if expected[root] is None or label < expected[root] else ():
                expected[node] = label if expected[node] is None else min(expected[node], label)
    assert tree.label_of(10 * np.arange(n), labels).tolist() == [
        -1 if label is None else label for label in expected
    ]
    candidates = draw.choice(n, 5, replace=False)
    found = tree.has_ancestor_among(10 * candidates)
    assert found.tolist() == [
        any(other != node and node in reach[other] for other in candidates.tolist())
        for node in candidates.tolist()
    ]
    assert tree.spread(labels).tolist() == [-1 if label is None else label for label in expected]


def test_windows_that_overlap_are_split_into_groups() -> None:
    opens, closes = np.array([0, 5, 10, 12, 3]), np.array([10, 12, 20, 15, 4])
    assert [rows.tolist() for rows in non_overlapping(opens, closes)] == [[0, 2], [4, 1, 3]]
    assert [rows.tolist() for rows in non_overlapping(opens[[2, 0]], closes[[2, 0]])] == [[1, 0]]
    assert [rows.tolist() for rows in non_overlapping(opens[:0], closes[:0])] == [[]]


def pieces_of(*rows: tuple[int, int, int, int]) -> Pieces:
    start, end, klass, step = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Pieces(
        start, end, klass.astype(np.uint8), step, -np.ones(len(rows), np.int64), np.arange(len(rows))
    )


def test_pieces_of_other_threads_are_charged_to_the_highest_code() -> None:
    pieces = pieces_of((0, 10, 4, 0), (5, 20, 5, 0), (30, 45, 4, 1), (32, 40, 6, 1), (41, 44, 6, 1))
    time, longest = pieces.charged(np.array([1, 2, 1, 3, 3]), (np.array([0, 28]), np.array([25, 50])), 4)
    assert time.tolist() == [[5, 5, 15, 0], [22 - 15, 4, 0, 11]]
    assert longest[:, 1:].tolist() == [
        [2, 1, 2],
        [30, 5, 32],
        [45, 20, 40],
    ], "number, start and end of the longest"
    without, _ = pieces.charged(np.array([1, -1, 1, 3, 3]), (np.array([0, 28]), np.array([25, 50])), 4)
    assert without.tolist()[0] == [15, 10, 0, 0]
    spread = pieces.spread(np.array([1, -1, 1, 3, -1]))
    assert spread.start.tolist() == [0, 30, 32]
    chosen = joined([pieces, pieces_of((7, 9, 1, 2))]).of_steps(np.array([50, 60, 70]), np.array([70, 60]))
    assert (chosen.start.tolist(), chosen.step.tolist()) == ([30, 32, 41, 7], [1, 1, 1, 0])
    assert (
        len(no_pieces()),
        len(joined([no_pieces(), pieces])),
        pieces.thread_class is pieces.klass,
        pieces.last is pieces.event,
    ) == (0, 5, True, True)
