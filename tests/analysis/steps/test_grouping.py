import numpy as np
import pytest

from tb_tpuprof.analysis.steps.grouping import eager_ops, groups
from tb_tpuprof.trace.trace import Trace
from tests.builders import drawing


def members(trace: Trace) -> dict[str, list[int]]:
    """Groups of the events of each name, in order."""
    found: dict[str, list[int]] = {}
    for metadata, group in zip(trace.events["metadata"].tolist(), groups(trace).group.tolist(), strict=True):
        found.setdefault(trace.strings[trace.metadata["name"][metadata]], []).append(group)
    return found


def test_a_root_groups_what_lies_inside() -> None:
    trace = drawing(
        """
        main   [train        ] [train        ]  [after ]
        main      [a ]            [a ]
        """,
        {"train": [{"_r": 1, "step_num": 7}, {"_r": 1, "step_num": 8}]},
    )
    assert members(trace) == {"train": [0, 1], "a": [0, 1], "after": [-1]}
    assert groups(trace).names == {0: "train 7", 1: "train 8"}


def test_contexts_carry_a_group_to_other_threads_and_on() -> None:
    trace = drawing(
        """
        main    [train             ]
        main       [send   ]
        worker        [receive        ]
        worker          [forward  ]
        second                 [last ]
        third                  [stray ]
        """,
        {
            "train": {"_r": 1},
            "send": {"_pt": 2, "_p": 5},
            "receive": {"_ct": 2, "_c": 5},
            "forward": {"_pt": 3, "_p": 5},
            "last": {"_ct": 3, "_c": 5},
            "stray": {"_ct": 4, "_c": 5},
        },
    )
    assert members(trace) == {
        "train": [0],
        "send": [0],
        "receive": [0],
        "forward": [0],
        "last": [0],
        "stray": [-1],
    }


def test_kernels_belong_to_the_step_that_launched_them() -> None:
    trace = drawing(
        """
        main    [train       ][train       ]
        main      [cuLaunch ]   [cuLaunch ]
        /device:GPU:0:
        stream      [kernel         ][kernel         ]
        """,
        {
            "train": {"_r": 1},
            "cuLaunch": [{"correlation_id": 1}, {"correlation_id": 2}],
            "kernel": [{"correlation_id": 1}, {"correlation_id": 2}],
        },
    )
    assert members(trace)["kernel"] == [0, 1]


def test_of_two_roots_that_reach_an_event_the_earlier_wins() -> None:
    trace = drawing(
        """
        main    [train   ][train   ]
        main      [send]    [send]
        worker       [shared  ]
        """,
        {"train": {"_r": 1}, "send": {"_pt": 0, "_p": 1}, "shared": {"_ct": 0, "_c": 1}},
    )
    assert members(trace)["shared"] == [0]


def test_a_root_inside_a_root_of_its_level_is_no_group_of_its_own() -> None:
    trace = drawing(
        """
        main   [epoch                         ]
        main     [train     ]  [train     ]
        """,
        {"epoch": {"_r": 1}, "train": {"_r": 1}},
    )
    assert members(trace) == {"epoch": [0], "train": [0, 0]}


def test_roots_of_a_higher_level_claim_first() -> None:
    trace = drawing(
        """
        main   [request                       ]
        main     [ProcessBatch  ]
        main       [work ]
        """,
        {"request": {"_r": 1}},
    )
    assert members(trace) == {"request": [1], "ProcessBatch": [0], "work": [0]}


def test_a_tie_that_leads_back_to_the_root_does_no_harm() -> None:
    trace = drawing(
        """
        main   [train          ]
        main     [send ]
        """,
        {"train": {"_r": 1, "_ct": 1, "_c": 1}, "send": {"_pt": 1, "_p": 1}},
    )
    assert members(trace) == {"train": [0], "send": [0]}


def test_groups_in_the_file_are_believed() -> None:
    trace = drawing(
        "main   [x  ][y  ]",
        {"x": {"group_id": 4, "step_name": "train 9"}, "y": {"group_id": 5}},
    )
    assert members(trace) == {"x": [4], "y": [5]}
    assert groups(trace).names == {4: "train 9", 5: "5"}


def test_groups_with_large_numbers_take_no_more_memory_than_others() -> None:
    """Tables by group have a place for each number: those of a hostile file would not fit."""
    trace = drawing(
        "main   [a ] [b ] [c ] [d ] [e ]",
        {
            "a": {"group_id": 2**31 - 1},
            "b": {"group_id": 7},
            "c": {"group_id": 2**62, "step_name": "late"},
            "d": {"group_id": -5, "step_name": "of no group"},
            "e": {"group_id": 2**31 - 1},
        },
    )
    assert members(trace) == {"a": [1], "b": [0], "c": [2], "d": [-1], "e": [1]}
    assert groups(trace).names == {0: "7", 1: "2147483647", 2: "late"}


@pytest.mark.parametrize(("number", "group"), [(2**22 - 1, 2**22 - 1), (2**22, 0)])
def test_from_four_million_on_groups_are_numbered_anew(number: int, group: int) -> None:
    trace = drawing("main   [a ]", {"a": {"group_id": number}})
    assert members(trace) == {"a": [group]}
    assert groups(trace).names == {group: str(number)}


def test_loops_of_tensorflow_cannot_be_grouped() -> None:
    trace = drawing(
        """
        main   [train               ]
        main     [WhileOp-EvalCond]
        """,
        {"train": {"_r": 1}},
    )
    assert groups(trace).has_loop_ops
    assert (groups(trace).group == -1).all()


def test_iterations_of_an_executor_are_groups() -> None:
    trace = drawing(
        """
        a    [ExecutorState::Process]   [ExecutorState::Process]
        b                        [ExecutorState::Process]
        """,
        {
            "ExecutorState::Process": [
                {"id": 3, "iter_num": 0},
                {"id": 3, "iter_num": 0},
                {"id": 3, "iter_num": 1},
            ]
        },
    )
    assert members(trace)["ExecutorState::Process"] == [0, 1, 0]


def test_tpu_steps_without_links_to_the_host_count_in_lock_step() -> None:
    trace = drawing("""
        /device:TPU:0:
        Steps     [s       ][s       ]
        XLA Ops    [a][b ]   [a][b ]
        /device:TPU:1:
        Steps     [s       ][s       ]
        XLA Ops    [a][b ]   [a][b ]
        """)
    assert members(trace) == {"s": [0, 1, 0, 1], "a": [0, 1, 0, 1], "b": [0, 1, 0, 1]}


def test_a_tpu_module_belongs_to_the_step_that_enqueued_it() -> None:
    launch = {"device_ordinal": 0, "queue_id": 1, "run_id": (1 << 27) + 5}
    trace = drawing(
        """
        main           [train               ]
        main             [DoEnqueueProgram]
        /device:TPU:0:
        XLA Modules            [module    ]
        XLA Ops                  [dot ]
        """,
        {
            "train": {"_r": 1, "step_num": 3},
            "DoEnqueueProgram": launch,
            "module": {"queue_id": 1, "run_id": 5},
        },
    )
    assert members(trace)["dot"] == [0]
    assert groups(trace).names == {0: "train 3"}


def test_eager_operations_lie_below_an_eager_call_of_no_function() -> None:
    trace = drawing(
        """
        main   [EagerExecute     ][EagerExecute     ]
        main     [MatMul:MatMul]    [Add:Add]
        """,
        {"EagerExecute": [{"is_func": 0}, {"is_func": 1}]},
    )
    eager = {
        trace.strings[trace.metadata["name"][m]]: bool(e)
        for m, e in zip(trace.events["metadata"].tolist(), eager_ops(trace).tolist(), strict=True)
    }
    assert eager["MatMul:MatMul"]
    assert not eager["Add:Add"]


def test_an_empty_trace_has_no_groups() -> None:
    assert groups(drawing("")).names == {}
    assert np.array_equal(groups(drawing("")).group, np.empty(0, np.int32))
