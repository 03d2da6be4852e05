"""Every moment of every step: one cause, one culprit, and sums equal to the steps'."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from tb_tpuprof.analysis.diagnosis import parts as module
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.parts import BY_CLASS, parts
from tb_tpuprof.analysis.input.tpu import waiting
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import rows, trace_of, us
from tests.analysis.diagnosis.random_traces import traces
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing

# Steps of 32, 22 and 23 µs: one compiles and computes, one dispatches and sleeps, one waits for data and is
# called back.
UNLIKE = """
main  [train                         ][train               ][train                ]
main   [u                           ]  [u                 ]  [v        ] [u      ]
main    [g              ]  [d   ]       [g    ] [s     ]      [n     ]    [k   ]
main      [c       ]                             [d  ]          [b ]       [v]
"""


def check_sums(trace: Trace) -> None:
    """Parts of a step add up to it, and those of a class to the class."""
    found, steps = parts(trace), waiting(trace).steps
    if not len(steps):
        assert found == ()
        return
    assert all((one.time_ps >= 0).all() and one.time_ps.any() for one in found)
    assert np.sum([one.time_ps for one in found], axis=0).tolist() == steps.duration_ps.tolist()
    for klass in TimeClass:
        mine = [one.time_ps for one in found if one.klass == klass]
        assert (np.sum(mine, axis=0) if mine else np.zeros(len(steps))).tolist() == steps.class_ps[
            :, klass
        ].tolist(), klass.name


def test_every_moment_has_a_cause_and_a_culprit() -> None:
    trace = trace_of(UNLIKE)
    assert rows(parts(trace)) == {
        (Cause.COMPILATION, "grow", "update", "grow"): [17, 0, 0],
        (Cause.DISPATCH, "update", "", "grow"): [0, 7, 0],
        (Cause.COMPUTE, "", "", ""): [6, 5, 0],
        (Cause.PYTHON, "update", "", ""): [7, 5, 3],
        (Cause.PYTHON, "update", "", "sleep"): [0, 3, 0],
        (Cause.PYTHON, "report", "", ""): [0, 0, 3],
        (Cause.INPUT, "report", "", "next"): [0, 0, 4],
        (Cause.INPUT, "batches", "", ""): [0, 0, 4],
        (Cause.CALLBACKS, "pure_callback", "update", "pure_callback"): [0, 0, 3],
        (Cause.CALLBACKS, "report", "", ""): [0, 0, 3],
        (Cause.UNRECORDED, "", "", ""): [2, 2, 3],
    }
    check_sums(trace)


def test_parts_are_in_order_of_their_time() -> None:
    means = [one.mean_ps for one in parts(trace_of(UNLIKE))]
    assert means == sorted(means, reverse=True)
    assert means[0] == pytest.approx(17 / 3 * PS)


def test_culprits_have_their_place_and_parts_their_longest_stretch() -> None:
    trace = trace_of(
        """
        main  [train       ][train                 ][train     ]
        main   [u     ][d ]  [u   ]   [u          ]   [d    ]
        """
    )
    (python,) = [one for one in parts(trace) if one.cause == Cause.PYTHON]
    assert python.culprit == Culprit("function", "update", "mine.py", 40)
    assert us(python.time_ps) == [8, 19, 0]
    # The drawing begins with the thread's name: `main` and two blanks.
    assert (python.n, python.first_ps, python.last_ps) == (3, 30 * PS, 43 * PS)


def test_frames_of_a_framework_dispatch_and_the_user_is_who_calls_them() -> None:
    trace = trace_of(
        """
        main  [train       ][train                 ][train     ]
        main   [u        ]    [p           ]          [u    ]
        main    [p   ]           [v    ]               [q ]
        main     [d]              [p ]
        """,
        {"q": "$queue.py:154 gather"},
    )
    assert rows(parts(trace)) == {
        (Cause.DISPATCH, "update", "", "run"): [3, 0, 0],
        (Cause.DISPATCH, "run", "", "run"): [0, 7, 0],
        (Cause.DISPATCH, "report", "", "run"): [0, 4, 0],
        (Cause.COMPUTE, "", "", ""): [3, 0, 0],
        (Cause.PYTHON, "update", "", ""): [5, 0, 3],
        (Cause.PYTHON, "update", "", "gather"): [0, 0, 4],
        (Cause.PYTHON, "report", "", ""): [0, 3, 0],
        (Cause.UNRECORDED, "", "", ""): [3, 10, 5],
    }


def test_a_common_file_name_belongs_to_the_frame_around_it() -> None:
    """`trainer.py` inside Keras is Keras's, inside the user's frame the user's."""
    trace = trace_of(
        """
        main  [train       ][train                 ][train     ]
        main   [p        ]    [u           ]          [t    ]
        main    [t   ]           [t    ]               [d ]
        main     [d]              [d ]
        """,
        {"t": "$trainer.py:77 fit"},
    )
    assert rows(parts(trace)) == {
        (Cause.DISPATCH, "run", "", "run"): [5, 0, 0],
        (Cause.DISPATCH, "fit", "", "run"): [3, 0, 0],
        (Cause.PYTHON, "fit", "", ""): [0, 3, 3],
        (Cause.PYTHON, "update", "", ""): [0, 7, 0],
        (Cause.COMPUTE, "", "", ""): [3, 4, 4],
        (Cause.UNRECORDED, "", "", ""): [3, 10, 5],
    }


def test_a_stronger_claim_wins_wherever_it_lies_and_of_equals_the_innermost() -> None:
    """A callback (4) inside a wait (2), a wait inside a callback, a wait inside a wait."""
    trace = trace_of(
        """
        main  [train       ][train                 ][train     ]
        main   [a        ]    [k           ]          [a    ]
        main    [k   ]           [a    ]               [z ]
        """,
        {"z": "cudaStreamSynchronize"},
    )
    assert rows(parts(trace)) == {
        (Cause.SYNCHRONIZATION, "np.asarray(jax.Array)", "", "np.asarray(jax.Array)"): [5, 0, 3],
        (Cause.SYNCHRONIZATION, "cudaStreamSynchronize", "", "np.asarray(jax.Array)"): [0, 0, 4],
        (Cause.CALLBACKS, "pure_callback", "", "np.asarray(jax.Array)"): [6, 7, 0],
        (Cause.CALLBACKS, "pure_callback", "", "pure_callback"): [0, 7, 0],
        (Cause.UNRECORDED, "", "", ""): [3, 10, 5],
    }


def test_a_time_in_an_annotation_has_its_name() -> None:
    trace = trace_of(
        """
        main  [train       ][train                 ][train     ]
        main   [anneal   ]    [anneal      ]         [u       ]
        main    [d   ]           [u    ]               [mix ]
        """
    )
    assert rows(parts(trace)) == {
        (Cause.PYTHON, "anneal", "", "anneal"): [5, 7, 0],
        (Cause.PYTHON, "mix", "update", "mix"): [0, 0, 6],
        (Cause.PYTHON, "update", "", ""): [0, 7, 4],
        (Cause.COMPUTE, "", "", ""): [6, 0, 0],
        (Cause.UNRECORDED, "", "", ""): [3, 10, 2],
    }


def test_work_of_other_threads_covers_what_the_steps_thread_says() -> None:
    """While the pool computes the thread's Python costs nothing; a callback there costs its time, within an
    operation or not.
    """
    trace = trace_of(
        """
        main  [train          ][train                    ][train     ]
        main   [o][u        ]   [o] [u           ]        [o][u    ]
        pool        [d    ]           [e             ]     [f        ]
        pool                            [k     ]
        pool                              [v  ]
        extra                                      [y     ]
        """,
        {"o": "send", "e": "dot:Dot", "f": "dot:Dot", "y": "$callback_list.py:5 on_batch_end"},
        {
            "y": {"_ct": 1, "_c": 2},
            "o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}, {"_pt": 1, "_p": 3}],
            "d": {"_ct": 1, "_c": 1}, "e": {"_ct": 1, "_c": 2}, "f": {"_ct": 1, "_c": 3},
        },
    )  # fmt: skip
    assert rows(parts(trace)) == {
        (Cause.PYTHON, "update", "", ""): [4, 2, 0],
        (Cause.DISPATCH, "send", "", "send"): [3, 3, 0],
        (Cause.COMPUTE, "", "", ""): [7, 8, 11],
        (Cause.CALLBACKS, "pure_callback", "", "dot:Dot"): [0, 3, 0],
        (Cause.CALLBACKS, "report", "", ""): [0, 5, 0],
        (Cause.CALLBACKS, "on_batch_end", "", "on_batch_end"): [0, 4, 1],
        (Cause.UNRECORDED, "", "", ""): [3, 2, 0],
    }
    check_sums(trace)


def test_a_fetch_is_waiting_for_data_and_a_transfer_a_transfer() -> None:
    trace = trace_of(
        """
        main  [train       ][train                 ][train     ]
        main   [i      ][d]   [u           ]          [d    ]
        main                     [t   ][d]
        """,
        {"i": "IteratorGetNext", "t": "BufferFromHostBuffer"},
    )
    assert rows(parts(trace)) == {
        (Cause.INPUT, "IteratorGetNext", "", "IteratorGetNext"): [9, 0, 0],
        (Cause.TRANSFERS, "update", "", "BufferFromHostBuffer"): [0, 6, 0],
        (Cause.PYTHON, "update", "", ""): [0, 5, 0],
        (Cause.COMPUTE, "", "", ""): [3, 3, 7],
        (Cause.UNRECORDED, "", "", ""): [2, 10, 5],
    }


def test_steps_of_a_device_alone_have_the_causes_of_their_classes() -> None:
    """No annotation on the host: kernels of three unlike steps of a GPU."""
    trace = drawing(
        """
        /device:GPU:0:
        Steps        [1           ][2          ][3              ]
        stream 1     [gemm    ]     [gemm ]      [ncclAllReduce]
        stream 2               [c]        [c]
        """,
        {"1": {"group_id": 1}, "2": {"group_id": 2}, "3": {"group_id": 3}},
    )
    check_sums(trace)
    assert step_pieces(trace)[1] is None
    assert {one.culprit for one in parts(trace)} <= {Culprit()}


def test_every_class_of_time_has_a_cause() -> None:
    assert set(BY_CLASS) == set(TimeClass)


def test_more_parts_than_can_be_told_apart_lose_names_but_no_time() -> None:
    """Each of 300 functions takes 2 µs of the first step, the first ten 5 of the second."""
    events = [
        DrawnEvent("train", 0, 600 * PS, {"_r": 1, "step_num": 0}),
        DrawnEvent("train", 600 * PS, 50 * PS, {"_r": 1, "step_num": 1}),
    ]
    events += [DrawnEvent(f"$mine.py:{i} f{i}", 2 * i * PS, 2 * PS) for i in range(300)]
    events += [DrawnEvent(f"$mine.py:{i} f{i}", (600 + 5 * i) * PS, 5 * PS) for i in range(10)]
    trace = build(
        [
            DrawnPlane(
                "/host:CPU", {"main": sorted(events, key=lambda event: (event.start_ps, -event.duration_ps))}
            )
        ]
    )
    check_sums(trace)
    time_by_row = rows(parts(trace))
    named = {key[1]: time for key, time in time_by_row.items() if key[1]}
    assert len(time_by_row) <= module._MOST
    assert {f"f{i}" for i in range(10)} <= set(named)
    assert named["f3"] == [2, 5]
    assert time_by_row[Cause.PYTHON, "", "", ""] == [600 - 2 * len(named), 0]


def test_the_longest_parts_of_all_steps_together_keep_their_names() -> None:
    """Function i takes 2 i + 2 µs of the first step and 400 - i of the second, so that those of high numbers
    are the longest together, but not in the second step alone.
    """
    first, second = [2 * i + 2 for i in range(260)], [400 - i for i in range(260)]
    marks = (0, sum(first)), (sum(first), sum(second))
    events = [
        DrawnEvent("train", at * PS, time * PS, {"_r": 1, "step_num": i})
        for i, (at, time) in enumerate(marks)
    ]
    for (at, _), times in zip(marks, (first, second), strict=True):
        for i, time in enumerate(times):
            events.append(DrawnEvent(f"$mine.py:{i + 1} f{i}", at * PS, time * PS))
            at += time
    events.sort(key=lambda event: (event.start_ps, -event.duration_ps))
    trace = build([DrawnPlane("/host:CPU", {"main": events})])
    check_sums(trace)
    named = {key[1]: time for key, time in rows(parts(trace)).items() if key[1]}
    assert named == {f"f{i}": [first[i], second[i]] for i in range(260 - (module._MOST - 50), 260)}


def test_steps_without_pieces_have_a_part_for_each_class_the_longest_first() -> None:
    class_ps = np.zeros((3, len(TimeClass)), np.int64)
    class_ps[:, TimeClass.HOST_WAIT_INPUT] = (0, 40, 20)
    class_ps[:, TimeClass.DEVICE_COMPUTE_16] = (100, 10, 50)
    class_ps[:, TimeClass.DEVICE_TO_HOST] = (1, 2, 3)
    steps = replace(waiting(trace_of(UNLIKE)).steps, class_ps=class_ps)
    found = module._by_class(steps)
    assert [(one.cause, one.klass, one.time_ps.tolist()) for one in found] == [
        (Cause.COMPUTE, TimeClass.DEVICE_COMPUTE_16, [100, 10, 50]),
        (Cause.INPUT, TimeClass.HOST_WAIT_INPUT, [0, 40, 20]),
        (Cause.TRANSFERS, TimeClass.DEVICE_TO_HOST, [1, 2, 3]),
    ]


def test_a_trace_without_steps_has_no_parts() -> None:
    assert parts(trace_of("main  [u   ][d  ]")) == ()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(traces())
def test_parts_of_any_trace_add_up(trace: Trace) -> None:
    check_sums(trace)


def test_a_function_of_tensorflow_that_is_traced_again_is_the_culprit_of_compiling() -> None:
    """Its call has its name, and holds frames of TensorFlow and of the code that is traced, which is not who
    calls it.
    """
    trace = trace_of(
        """
        main  [train                        ][train                         ]
        main  [u                           ] [w                            ]
        main   [grow                  ] [d]   [shrink                 ] [d]
        main    [y                   ]         [t                    ]
        main     [t                 ]
        main      [v     ]
        """,
        {
            "w": "$shop.py:3 fit_all",
            "y": "$polymorphic_function.py:852 _call",
            "t": "tf.function-graph_building",
            "v": "$__autograph_generated_file1.py:6 tf__grow",
        },
    )
    compilations = {key[1:3]: time for key, time in rows(parts(trace)).items() if key[0] == Cause.COMPILATION}
    assert {who for who, _ in compilations} == {"grow", "shrink"}
    assert {caller for _, caller in compilations} == {"update", "fit_all"}


def test_a_copy_on_another_thread_is_a_copy_and_the_work_around_it_work() -> None:
    """The pool copies for 6 µs of the 20 in which it works: for the program that was called last before."""
    trace = trace_of(
        """
        main  [train                                 ][train               ]
        main  [o][g ]                                 [o][h ]
        pool        [region               ]                 [region     ]
        pool          [t    ]                                   [t]
        """,
        {"o": "send", "region": "Run region", "t": "H2D Dispatch"},
        {
            "o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}],
            "region": [{"_ct": 1, "_c": 1}, {"_ct": 1, "_c": 2}],
        },
    )
    time_by_row = {(key[0], key[3]): time for key, time in rows(parts(trace)).items()}
    assert time_by_row[Cause.TRANSFERS, "grow"] == [7, 0]
    assert time_by_row[Cause.TRANSFERS, "shrink"] == [0, 3]
    assert time_by_row[Cause.COMPUTE, ""] == [23 - 7, 13 - 3]


def test_a_region_that_runs_operations_ends_with_the_last_of_them() -> None:
    """Its mark comes when the thread runs again, 14 µs later; a region without operations lasts until its
    mark.
    """
    trace = trace_of(
        """
        main  [train                                 ][train               ]
        main  [o]                 [u                ] [o]
        pool    [r][q      ][q   ]               [x]    [r]          [x]
        """,
        {
            "o": "send",
            "q": "dot.3",
            "r": "ThreadpoolListener::StartRegion",
            "x": "ThreadpoolListener::StopRegion",
        },
        {
            "o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}],
            "r": [{"_ct": 1, "_c": 1}, {"_ct": 1, "_c": 2}],
            "q": {"hlo_op": "dot.3"},
        },
    )
    time_by_row = {(key[0], key[1]): time for key, time in rows(parts(trace)).items()}
    assert time_by_row[Cause.COMPUTE, ""][0] == 18
    assert time_by_row[Cause.PYTHON, "update"] == [19, 0]
    assert time_by_row[Cause.COMPUTE, ""][1] == 13
