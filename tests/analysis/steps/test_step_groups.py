"""Groups that odd files state, iterations, loops that fetch data, roots and markers of steps."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.steps.grouping import eager_ops, fetching_loops, groups
from tb_tpuprof.analysis.steps.pytorch import windows
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event


def stated(largest: int) -> list[DrawnEvent]:
    return [
        event("a", 0, 5, group_id=2, step_name="train 2"),
        event("b", 6, 5, group_id=-7),
        event("c", 12, 5, group_id=largest),
        event("d", 18, 5, group_id=0),
        event("e", 24, 5),
        event("f", 30, 5, group_id=2),
        event("g", 36, 5, group_id=5, step_name=""),
    ]


@pytest.mark.parametrize(
    ("largest", "group", "names"),
    [
        (2**22 - 1, [2, -1, 2**22 - 1, 0, -1, 2, 5], {2: "train 2", 0: "0", 5: "", 2**22 - 1: "4194303"}),
        (2**22, [1, -1, 3, 0, -1, 1, 2], {1: "train 2", 0: "0", 2: "", 3: "4194304"}),
        (2**40, [1, -1, 3, 0, -1, 1, 2], {1: "train 2", 0: "0", 2: "", 3: "1099511627776"}),
    ],
)
def test_groups_that_a_file_states(largest: int, group: list[int], names: dict[int, str]) -> None:
    """A number that is too large for tables by group renumbers all of them."""
    found = groups(build([DrawnPlane("/host:CPU", {"main": stated(largest)})]))
    assert found.group.tolist() == group
    assert found.names == names
    assert found.named_roots.tolist() == [0]
    assert [found.step_name(number) for number in (-1, group[0], 77)] == ["", "train 2", "77"]
    assert not found.has_loop_ops


def test_numbers_of_groups_come_from_the_root_or_what_encloses_it() -> None:
    main = [
        event("own", 0, 5, _r=1, iter_num=7, step_num=3),
        event("outer", 10, 50, step_num=9),
        event("between", 11, 40),
        event("inner", 12, 5, _r=1),
        event("iterations", 70, 20, iter_num=4),
        event("low", 71, 5, _r=1),
        event("zero", 100, 5, _r=1, step_num=0),
        event("none", 110, 5, _r=1),
        event("FunctionRun", 120, 5, _r=1, step_num=8),
        event("SessionRun", 130, 5, _r=1, graph_type="train"),
    ]
    found = groups(build([DrawnPlane("/host:CPU", {"main": main})]))
    assert found.names == {
        0: "own 7",
        1: "inner 9",
        2: "low 4",
        3: "zero 0",
        4: "none 4",
        5: "8",
        6: "train 6",
    }
    assert found.named_roots.tolist() == [0, 3, 5, 6, 7]


EXECUTOR = "ExecutorState::Process"


def iterations(first: int, step_id: int, n: int) -> list[DrawnEvent]:
    return [event(EXECUTOR, first + 10 * i, 5, id=step_id, iter_num=i // 2) for i in range(2 * n)]


@pytest.mark.parametrize(
    ("marker", "gpu", "is_loop"),
    [
        (None, False, True),
        ("train", False, False),
        ("train", True, False),
        ("FunctionRun", False, False),
        ("FunctionRun", True, True),
        (None, True, True),
    ],
)
def test_iterations_are_steps_unless_the_user_marks_them(
    marker: str | None, gpu: bool, is_loop: bool
) -> None:
    """Three iterations of two events each; a function's run marks steps only where no device does."""
    main = (
        ([event(marker, 0, 200, _r=1, step_num=5)] if marker else [])
        + iterations(10, 3, 3)
        + [event("x", 300, 5)]
    )
    planes = [DrawnPlane("/host:CPU", {"main": main})] + (
        [DrawnPlane("/device:GPU:0", {"s": [event("k", 0, 1)]})] if gpu else []
    )
    group = groups(build(planes)).group.tolist()
    own = group[1:7] if marker else group[:6]
    assert own == ([0, 0, 1, 1, 2, 2] if is_loop else [0] * 6)
    assert group[len(main) - 1] == -1


def test_functions_that_tf_data_runs_are_no_steps() -> None:
    data = [event("InstantiatedCapturedFunction::Run", 0, 9, id=4), *iterations(100, 4, 2)]
    other = [
        *iterations(500, 9, 2),
        *iterations(700, 8, 1),
        event(EXECUTOR, 900, 5, iter_num=3),
        event(EXECUTOR, 910, 5, id=9),
    ]
    trace = build([DrawnPlane("/host:CPU", {"data": data, "other": other})])
    assert groups(trace).group.tolist() == [*[-1] * 5, 0, 0, 1, 1, *[-1] * 4]
    root = build(
        [
            DrawnPlane(
                "/host:CPU",
                {
                    "data": [
                        *data[:1],
                        event("FunctionRun", 20, 9, _r=1, id=4),
                        event("FunctionRun", 40, 9, _r=1, id=6),
                    ]
                },
            )
        ]
    )
    assert groups(root).group.tolist() == [-1, -1, 0]


def test_loops_that_fetch_their_own_data() -> None:
    fetch = "IteratorGetNextOp::DoCompute"
    pool = [
        *iterations(0, 3, 2),
        event(fetch, 200, 3, id=3, iter_num=0),
        event(fetch, 210, 3, id=3, iter_num=1),
        event(fetch, 220, 3, id=77, iter_num=5),
    ]
    assert (fetching_loops(build([DrawnPlane("/host:CPU", {"p": pool})]))).tolist() == [4, 5]
    once = [
        *iterations(0, 3, 2),
        event(fetch, 200, 3, id=3, iter_num=0),
        event("ReduceIterator::Root::Scan", 300, 9),
        event("ReduceIterator::Root", 310, 9),
        event("Other::Scan", 320, 2),
    ]
    assert fetching_loops(build([DrawnPlane("/host:CPU", {"p": once})])).tolist() == [5]


def test_eager_operations() -> None:
    main = [
        event("EagerExecute", 0, 20, is_func=0),
        event("inner", 1, 5),
        event("EagerExecute", 30, 20, is_func=1),
        event("called", 31, 5),
        event("EagerExecute", 32, 2, is_func=0),
        event("other", 60, 9, is_func=0),
    ]
    assert eager_ops(build([DrawnPlane("/host:CPU", {"m": main})])).tolist() == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    calls = [event("EagerExecute", 0, 20, is_func=1), event("x", 1, 3)]
    assert not eager_ops(build([DrawnPlane("/host:CPU", {"m": calls})])).any()
    stated = [
        event("a", 0, 5, is_eager=1),
        event("b", 6, 5, is_eager=0),
        event("EagerExecute", 12, 5, is_func=0),
    ]
    assert eager_ops(build([DrawnPlane("/host:CPU", {"m": stated})])).tolist() == [True, False, False]


def test_roots_by_their_names() -> None:
    """A batch of a model server claims before the session inside of it; a legacy context needs no stat."""
    main = [
        event("TraceContext", 0, 9),
        event("a", 1, 3),
        event("BatchingSessionRun", 20, 30),
        event("ProcessBatch", 22, 20),
        event("b", 25, 5),
        event("c", 45, 3),
        event("OrbaxServing::ProcessBatch", 60, 9),
        event("d", 61, 3),
        event("Trace", 80, 9),
    ]
    found = groups(build([DrawnPlane("/host:CPU", {"main": main})]))
    assert found.group.tolist() == [2, 2, 3, 0, 0, 3, 1, 1, -1]


def test_cores_without_steps_and_lines_of_steps_beside_another() -> None:
    """What a core without steps consumes leads to no event; an empty step keeps its number; of two lines of
    steps the last counts.
    """
    main = [event("first", 0, 3), event("train", 10, 80, _r=1, step_num=0), event("send", 12, 2, _pt=1, _p=5)]
    cores = [
        DrawnPlane("/device:TPU:0", {"Steps": [event("s", 20, 10)], "XLA Ops": [event("op", 22, 3)]}),
        DrawnPlane("/device:TPU:1", {"XLA Ops": [event("op", 25, 3, _ct=1, _c=5), event("op", 30, 3)]}),
    ]
    trace = build([DrawnPlane("/host:CPU", {"main": main}), *cores])
    assert groups(trace).group.tolist() == [-1, 0, 0, 1, 1, -1, -1]
    lines = {
        "Steps": [event("s", 0, 50)],
        "Sparse Core Steps": [event("s", 0, 10), event("s", 10, 0), event("s", 20, 10)],
        "XLA Ops": [event("op", 2, 3), event("op", 22, 3), event("op", 40, 3)],
    }
    alone = build([DrawnPlane("/device:TPU:0", lines)])
    assert groups(alone).group.tolist() == [-1, 0, 1, 2, 0, 2, -1]


def test_only_markers_on_the_host_are_windows() -> None:
    """By start; PyTorch also writes the annotation onto the device, and a marker may have no length."""
    main = [
        event("ProfilerStep", at, length, _r=1, step_num=i)
        for i, (at, length) in enumerate(((0, 20), (20, 0), (20, 30)))
    ]
    device = [event("ProfilerStep", 5, 90, _r=1, step_num=9)]
    found = windows(
        build([DrawnPlane("/host:CPU", {"main": main}), DrawnPlane("/device:GPU:0", {"s": device})])
    )
    assert found.row.tolist() == [0, 2]
    assert ((found.start // PS).tolist(), (found.end // PS).tolist()) == ([0, 20], [20, 50])
