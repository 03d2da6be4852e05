"""Python threads other than the steps'."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.other_threads import ahead_of_device, other_threads
from tb_tpuprof.analysis.diagnosis.records import ThreadActivity
from tb_tpuprof.analysis.diagnosis.runtime_threads import concurrent_copies
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import trace_of
from tests.builders import PS, DrawnEvent, DrawnPlane, build

LEGEND = {
    "w": "$work.py:3 spin",
    "n": "$work.py:9 put",
    "m": "$mine.py:4 put",
    "x": "$feeder.py:9 fill",
    "q": "$queue.py:122 put",
    "y": "$feeder.py:30 decode",
}
# Steps of 20, 30 and 10 µs.
STEPS = """
main     [train             ][train                       ][train   ]
main      [d   ]              [d   ]                        [d   ]
"""


def ahead_trace(frame: str) -> Trace:
    """Three steps that only dispatch, with 4, 3 and 2 µs of a frame each, four runs of XLA:CPU, and copies of
    5 and 6 µs at the same time.
    """

    def event(name: str, start: int, time: int, **stats: int | str) -> DrawnEvent:
        return DrawnEvent(name, start * PS, time * PS, stats)

    main = [event("$loop.py:1 train", 0, 30)]
    for i, time in enumerate((4, 3, 2)):
        tie = {} if i else {"_pt": 1, "_p": 1}
        main.append(event("train", 10 * i, 9, _r=1, step_num=i))
        main.append(event("PjitFunction(step)", 10 * i + 1, 3))
        main.append(event("CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice", 10 * i + 1, 2, **tie))
        main.append(event(frame, 10 * i + 4, time))
    spans = [(0, 4), (5, 20), (25, 15), (40, 30)]
    runs = [
        event("dot", at, time, run_id=70 + i, hlo_op="dot", _ct=1, _c=1) for i, (at, time) in enumerate(spans)
    ]
    copies = [event("H2D Dispatch", 0, 5), event("H2D Dispatch", 30, 6)]
    return build([DrawnPlane("/host:CPU", {"main": main, "pool": runs, "copies": copies})])


def activities(text: str) -> tuple[ThreadActivity, ...]:
    return other_threads(trace_of(STEPS.strip("\n") + "\n" + text.strip("\n"), LEGEND))


def test_a_thread_that_runs_one_function_through_all_steps_runs_all_the_time() -> None:
    """One frame without others inside: a stretch that spans three steps."""
    (one,) = activities("spinner  [w                                                         ]")
    assert (one.thread, one.culprit, one.hands_over) == (
        "spinner",
        Culprit("function", "spin", "work.py", 3),
        False,
    )
    assert (one.running, one.waiting) == (pytest.approx(1), 0)


def test_time_outside_of_the_steps_counts_nowhere() -> None:
    """Begins 5 µs before the first step and ends 15 in it; again from 10 before the last one's end to long
    after it.
    """
    trace = trace_of(
        """
        main         [train             ][train                       ][train   ]
        main          [d   ]              [d   ]                        [d   ]
        spinner [w                 ]                                   [w                     ]
        """,
        LEGEND,
    )
    (one,) = other_threads(trace)
    assert one.running == pytest.approx((15 + 10) / 60)


def test_running_is_not_waiting_and_the_busiest_thread_comes_first() -> None:
    """The feeder is in `fill` for 43 µs, of which it sleeps 3 + 8 and waits 9 for room in its queue; the
    worker runs 27.
    """
    worker, feeder = activities(
        """
feeder    [x                                        ]
feeder      [y       ]      [s     ]  [q          ]
feeder        [s]                      [s      ]
worker   [w                        ]
"""
    )
    assert (worker.thread, worker.hands_over, feeder.hands_over) == ("worker", False, True)
    assert (worker.running, worker.waiting) == (pytest.approx(27 / 60), 0)
    assert (feeder.running, feeder.waiting) == (pytest.approx(23 / 60), pytest.approx(20 / 60))
    assert feeder.culprit == Culprit("function", "fill", "feeder.py", 9)


def test_waiting_for_space_in_a_queue_is_no_work() -> None:
    """`fill` sleeps 30 µs in `put`; `decode` sleeps 12 by itself: that sleep takes the thread's time."""
    (one,) = activities(
        """
feeder    [y         ][x                                    ]
feeder    [s         ][q                                  ]
feeder                 [s                               ]
"""
    )
    assert one.hands_over
    assert one.culprit.name == "decode"


def test_pools_of_the_runtime_and_the_steps_own_thread_are_none() -> None:
    assert activities("tf_data  [w                  ]") == ()
    assert other_threads(trace_of("main  [train      ]\nmain   [u     ]\nmain    [d  ]")) == ()


def test_threads_without_frames_are_none() -> None:
    assert activities("pool     [d                  ]") == ()


def test_without_steps_there_are_none() -> None:
    assert other_threads(trace_of("a [u   ]\nb [v   ]")) == ()


def test_a_users_own_function_named_put_hands_nothing_over() -> None:
    (one,) = activities("worker   [m      ]")
    assert (one.culprit.name, one.hands_over) == ("put", False)


def test_a_file_name_that_libraries_have_too_is_the_users() -> None:
    """`work.py` is such a name, and `put` in it the user's; inside a frame of JAX both are JAX's."""
    mine, theirs = activities(
        """
mine     [w                  ]
mine       [n     ]
theirs   [p         ]
theirs    [w       ]
"""
    )
    assert (mine.culprit.name, mine.hands_over) == ("spin", False)
    assert mine.running == pytest.approx(21 / 60)
    assert (theirs.culprit.name, theirs.running) == ("", pytest.approx(12 / 60))


def test_own_python_that_runs_ahead_of_the_device_is_a_share_of_its_computing() -> None:
    """Of the 69 µs of computing 3 + 3 + 2 pass in `weigh`; `train` itself, which calls the program, may wait
    in the call.
    """
    trace = ahead_trace("$mine.py:4 weigh")
    activity = ahead_of_device(trace)
    assert activity is not None
    assert (activity.thread, activity.culprit) == ("main", Culprit("function", "weigh", "mine.py", 4))
    assert activity.running == pytest.approx(8 / 69)
    assert (activity.waiting, activity.hands_over) == (0, False)
    assert concurrent_copies(trace) == pytest.approx((4 + 6) / 69)


def test_sleep_and_library_code_ahead_of_the_device_take_no_processor() -> None:
    assert ahead_of_device(ahead_trace("$time sleep")) is None
    assert ahead_of_device(ahead_trace("$array.py:298 __float__")) is None


def test_steps_that_wait_for_their_results_run_nothing_ahead() -> None:
    assert ahead_of_device(trace_of(STEPS, LEGEND)) is None
