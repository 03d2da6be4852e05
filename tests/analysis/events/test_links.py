"""Ties between events of different threads and devices, on small drawn traces."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tb_tpuprof.analysis.events.links import context_name, launch_to_kernel, ties
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, Stats, build, drawing


def tied(trace: Trace) -> dict[str, list[tuple[list[str], list[str]]]]:
    """(producers, consumers) of each hub by the kind of tie."""
    found = ties(trace)
    names = [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]
    producers, consumers = defaultdict(list), defaultdict(list)
    for column, hubs, ends in (
        (found.producer, found.producer_hub, producers),
        (found.consumer, found.consumer_hub, consumers),
    ):
        for event, hub in zip(column.tolist(), hubs.tolist(), strict=True):
            ends[hub].append(names[event])
    bounds = [first for first, _ in found.kinds] + [found.n_hubs]
    assert bounds == sorted(bounds)
    assert set(producers) | set(consumers) <= set(range(found.n_hubs))
    return {
        kind: sorted((sorted(producers[hub]), sorted(consumers[hub])) for hub in range(first, last))
        for (first, kind), last in zip(found.kinds, bounds[1:], strict=True)
    }


def made(kind: int, number: int) -> Stats:
    return {"_pt": kind, "_p": number}


def used(kind: int, number: int) -> Stats:
    return {"_ct": kind, "_c": number}


def test_contexts_of_several_types() -> None:
    """Two producers of one id, an id that nobody uses, one that nobody produced, a type above 63."""
    trace = drawing(
        """
        one  [a][b][c][d][e][f][z]
        two                        [u][v][w][x][y]
        """,
        {
            "a": made(5, 1),
            "b": made(5, 1),
            "c": made(5, 2),
            "d": made(9, 1),
            "e": made(5, 3),
            "f": made(77, 1),
            "z": made(-1, 1),
            "u": used(5, 1),
            "v": used(5, 2),
            "w": used(9, 1),
            "x": used(5, 4),
            "y": used(77, 1),
        },
    )
    found = tied(trace)
    both = {kind: [pair for pair in pairs if pair[0] and pair[1]] for kind, pairs in found.items()}
    assert both == {
        "PjRt": [(["a", "b"], ["u"]), (["c"], ["v"])],
        "GPU launch": [(["d"], ["w"])],
    }


def test_types_of_contexts_are_0_to_63() -> None:
    kinds = (-1, 0, 63, 64)
    lines = {
        "one": [DrawnEvent(f"p{kind}", i, 1, made(kind, 1)) for i, kind in enumerate(kinds)],
        "two": [DrawnEvent(f"c{kind}", 10 + i, 1, used(kind, 1)) for i, kind in enumerate(kinds)],
    }
    found = tied(build([DrawnPlane("/host:CPU", lines)]))
    assert found == {"context": [(["p0"], ["c0"])], "context 63": [(["p63"], ["c63"])]}


def test_ids_of_several_processes_are_kept_apart() -> None:
    planes = [
        DrawnPlane(
            f"/host:CPU{suffix}",
            {
                "one": [DrawnEvent(f"p{suffix}", 1, 1, made(5, 1))],
                "two": [DrawnEvent(f"c{suffix}", 5, 1, used(5, 1))],
            },
            {"process_id": 10 + i},
        )
        for i, suffix in enumerate(("", "2", "3"))
    ]
    assert tied(build(planes))["PjRt"] == [(["p"], ["c"]), (["p2"], ["c2"]), (["p3"], ["c3"])]
    for plane in planes:
        plane.stats = {"process_id": 10}
    assert tied(build(planes))["PjRt"] == [(["p", "p2", "p3"], ["c", "c2", "c3"])]


def test_executors_feed_the_iterators_of_their_step() -> None:
    trace = drawing(
        """
        one  [ExecutorState::Process][ExecutorState::Process][ExecutorState::Process][other]
        two                [IteratorGetNextOp::DoCompute][IteratorGetNextAsOptionalOp::DoCompute]
        """,
        {
            "ExecutorState::Process": [
                {"id": 1, "iter_num": 4},
                {"id": 1, "iter_num": 5},
                {"id": 1, "iter_num": 5},
            ],
            "other": {"id": 1, "iter_num": 5},
            "IteratorGetNextOp::DoCompute": {"id": 1, "iter_num": 5},
            "IteratorGetNextAsOptionalOp::DoCompute": {"id": 1, "iter_num": 4},
        },
    )
    found = ties(trace)
    pairs = {
        (int(p), int(c))
        for p, a in zip(found.producer, found.producer_hub, strict=True)
        for c, b in zip(found.consumer, found.consumer_hub, strict=True)
        if a == b
    }
    assert [kind for _, kind in found.kinds] == ["iterator"]
    assert pairs == {(2, 4), (0, 5)}  # the last of two executors with equal numbers


def test_launches_and_their_kernels() -> None:
    """The last launch of an id counts; framework operations launch nothing; copies do."""
    trace = drawing(
        """
        main    [launch][launch][Add:Add][MemcpyHtoD]
        /device:GPU:0:
        Stream             [k1][k2][k3][k4]
        """,
        {
            "launch": [{"correlation_id": 1}, {"correlation_id": 1}],
            "Add:Add": {"correlation_id": 2},
            "MemcpyHtoD": {"correlation_id": 3},
            "k1": {"correlation_id": 1},
            "k2": {"correlation_id": 2},
            "k3": {"correlation_id": 3},
            "k4": {"correlation_id": 9},
        },
    )
    launch, launched, kernel, used_ids = launch_to_kernel(trace)
    assert (launch.tolist(), launched.tolist()) == ([1, 3], [1, 3])
    assert (kernel.tolist(), used_ids.tolist()) == ([4, 5, 6, 7], [1, 2, 3, 9])
    both = [pair for pair in tied(trace)["kernel launch"] if pair[0] and pair[1]]
    assert both == [(["MemcpyHtoD"], ["k3"]), (["launch"], ["k1"])]


def test_programs_of_a_tpu_and_their_callbacks() -> None:
    """By core, queue, run and type of core. The device reports the low 27 bits of a run's id only."""
    run = (1 << 27) + 5
    launch, callback = "DoEnqueueProgram", "CompleteCallbacks"
    host = [
        DrawnEvent(launch, 1, 1, {"queue_id": 1, "run_id": run, "device_ordinal": 0, "core_type": 0}),
        DrawnEvent(launch, 3, 1, {"queue_id": 1, "run_id": run, "device_ordinal": 1}),
        DrawnEvent(launch, 5, 1, {"queue_id": 1, "run_id": run, "device_ordinal": 2}),
        DrawnEvent(callback, 70, 1, {"queue_id": 1, "run_id": run, "device_ordinal": 1}),
        DrawnEvent("other", 71, 1, {"queue_id": 1, "run_id": run, "device_ordinal": 1}),
    ]
    cores = [
        DrawnPlane(
            f"/device:TPU:{i}",
            {
                "XLA Modules": [DrawnEvent(f"jit_f({i})", 20 + i, 9, {"queue_id": queue, "run_id": 5})],
                "XLA Ops": [DrawnEvent(f"op{i}", 20 + i, 5, {"queue_id": queue, "run_id": 5})],
            },
        )
        for i, queue in ((0, 1), (1, 1), (2, 3))
    ]
    found = tied(build([DrawnPlane("/host:CPU", {"main": host}), *cores]))
    both = [pair for pair in found["TPU launch"] if pair[0] and pair[1]]
    assert both == [([launch], [callback, "jit_f(1)"]), ([launch], ["jit_f(0)"])]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(0, "context"), (5, "PjRt"), (17, "SparseCore offload"), (18, "context 18"), (-1, "context -1")],
)
def test_names_of_context_types(kind: int, name: str) -> None:
    assert context_name(kind) == name


def test_a_crowd_on_both_sides_is_no_tie() -> None:
    """63 events on one side may share an id; with 64 on both sides it identifies nothing."""
    for n, is_tie in ((63, True), (64, False)):
        lines = {
            "one": [DrawnEvent("p", i, 1, made(5, 1)) for i in range(n)],
            "two": [DrawnEvent("c", 100 + i, 1, used(5, 1)) for i in range(64)],
        }
        found = ties(build([DrawnPlane("/host:CPU", lines)]))
        hubs = set(found.producer_hub.tolist()) & set(found.consumer_hub.tolist())
        assert bool(hubs) == is_tie


def test_a_trace_without_stats_has_no_ties() -> None:
    found = ties(drawing("main  [a ][b ]"))
    assert (found.n_hubs, found.kinds, len(found.producer), len(found.consumer)) == (0, (), 0, 0)
