"""Python threads beside the steps' own."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.threads_beside import Beside, threads_beside
from tests.analysis.diagnosis.drawn import trace_of

LEGEND = {
    "w": "$work.py:3 spin", "n": "$work.py:9 put", "m": "$mine.py:4 put", "x": "$feeder.py:9 fill", "q": "$queue.py:122 put",
    "y": "$feeder.py:30 decode",
}  # fmt: skip
# Steps of 20, 30 and 10 µs.
STEPS = """
main     [train             ][train                       ][train   ]
main      [d   ]              [d   ]                        [d   ]
"""


def beside(text: str) -> tuple[Beside, ...]:
    return threads_beside(trace_of(STEPS.strip("\n") + "\n" + text.strip("\n"), LEGEND))


def test_a_thread_that_runs_one_function_through_all_steps_runs_all_the_time() -> None:
    """One frame without any inside of it: a stretch that lies in three steps."""
    (one,) = beside("spinner  [w                                                         ]")
    assert (one.thread, one.culprit, one.hands_over) == ("spinner", Culprit("function", "spin", "work.py", 3), False)
    assert (one.running, one.waiting) == (pytest.approx(1), 0)


def test_time_outside_of_the_steps_counts_nowhere() -> None:
    """Begins 5 µs before the first step and ends 15 in it; again from 10 before the last one's end to long after it."""
    trace = trace_of(
        """
        main         [train             ][train                       ][train   ]
        main          [d   ]              [d   ]                        [d   ]
        spinner [w                 ]                                   [w                     ]
        """,
        LEGEND,
    )
    (one,) = threads_beside(trace)
    assert one.running == pytest.approx((15 + 10) / 60)


def test_running_is_told_from_waiting_and_the_longest_runner_comes_first() -> None:
    """The feeder is in `fill` for 43 µs, of which it sleeps 3 + 8 and waits 9 for room in its queue; the worker runs 27."""
    worker, feeder = beside(
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


def test_waiting_for_room_is_nobodys_work() -> None:
    """`fill` sleeps 30 µs in `put`; `decode` sleeps 12 by itself: that is what takes the thread's time."""
    (one,) = beside(
        """
feeder    [y         ][x                                    ]
feeder    [s         ][q                                  ]
feeder                 [s                               ]
"""
    )
    assert one.hands_over
    assert one.culprit.name == "decode"


def test_pools_of_the_runtime_and_the_steps_own_thread_are_none() -> None:
    assert beside("tf_data  [w                  ]") == ()
    assert threads_beside(trace_of("main  [train      ]\nmain   [u     ]\nmain    [d  ]")) == ()


def test_threads_without_frames_are_none() -> None:
    assert beside("pool     [d                  ]") == ()


def test_without_steps_there_are_none() -> None:
    assert threads_beside(trace_of("a [u   ]\nb [v   ]")) == ()


def test_a_users_own_function_named_put_hands_nothing_over() -> None:
    (one,) = beside("worker   [m      ]")
    assert (one.culprit.name, one.hands_over) == ("put", False)


def test_a_file_name_that_libraries_have_too_is_the_users() -> None:
    """`work.py` is such a name, and `put` in it the user's; inside of a frame of JAX both are JAX'."""
    mine, theirs = beside(
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
