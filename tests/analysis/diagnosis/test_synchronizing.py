"""Waits for the device in mid-step, and the host work after them."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import Sync
from tb_tpuprof.analysis.diagnosis.synchronizing import synchronizing
from tests.analysis.diagnosis.drawn import trace_of, us
from tests.builders import PS

LEGEND = {
    "f": "$array.py:10 __float__",
    "q": "$array.py:99 _value",
    "m": "$train.py:20 fit",
    "w": "$mine.py:60 loss",
    "d": "dot.3",
}


def found_in(text: str) -> tuple[Sync, ...]:
    return synchronizing(trace_of(text, LEGEND, {"d": {"hlo_op": "dot.3"}} if "[d" in text else None))


def summary(sync: Sync) -> tuple[str, str, list[int], list[float], list[float]]:
    return sync.call, sync.culprit.name, sync.per_step.tolist(), us(sync.after_ps), us(sync.computed_ps)


def test_the_hosts_time_behind_a_wait_lasts_until_its_function_ends_or_dispatches_again() -> None:
    """Three unlike steps: until the next dispatch (5 µs), until the function's end (8), without an operation
    of 5 (8 - 5).
    """
    (sync,) = found_in(
        """
        main  [train                ][train                 ][train                  ]
        main  [u                   ] [u               ]      [u                    ]
        main   [d   ][a  ]     [g ]   [d ] [a ]                [d      ][a ]   [d  ]
        """
    )
    assert summary(sync) == ("np.asarray(jax.Array)", "update", [1, 1, 1], [5, 8, 3], [6, 4, 9 + 5])
    assert sync.culprit == Culprit("function", "update", "mine.py", 40)


def test_host_work_behind_several_waits_of_a_step_adds_up_and_the_longest_is_shown() -> None:
    """The first is followed by 4 µs of Python until the next dispatch, the second by 9 until the function
    ends.
    """
    (sync,) = found_in(
        """
        main  [train                                      ][train             ]
        main  [u                                         ] [u                ]
        main   [d   ][a  ]    [g ][d ] [a       ]           [d ][a ]
        """
    )
    assert sync.per_step.tolist() == [2, 1]
    assert us(sync.after_ps) == [4 + 9, 10]
    assert (sync.last_ps - sync.first_ps) == 10 * PS


def test_a_wait_inside_of_a_wait_is_the_outer_one() -> None:
    (sync,) = found_in(
        """
        main  [train                ][train                 ]
        main  [w                   ] [w               ]
        main   [d   ][f   ]           [d ] [f  ]
        main          [q ]                  [a]
        """
    )
    assert summary(sync)[:3] == ("__float__", "loss", [1, 1])


def test_a_common_file_name_is_the_users() -> None:
    """`train.py` is a name that libraries also use: outside them, `fit` is the user's."""
    (sync,) = found_in(
        """
        main  [train                ][train                 ]
        main  [m                   ] [m               ]
        main   [d   ][f   ]           [d ] [f  ]
        """
    )
    assert sync.culprit == Culprit("function", "fit", "train.py", 20)


def test_without_frames_the_call_is_the_culprit_and_the_step_the_bound() -> None:
    (sync,) = found_in(
        """
        main  [train                ][train                 ][train       ]
        main   [d   ][a  ]     [g ]   [d ] [a ]               [d     ]
        """
    )
    assert summary(sync) == (
        "np.asarray(jax.Array)",
        "np.asarray(jax.Array)",
        [1, 1, 0],
        [5, 14, 0],
        [6, 4, 8],
    )
    assert sync.culprit.kind == "call"


def test_what_another_thread_computes_meanwhile_is_not_lost() -> None:
    trace = trace_of(
        """
        main  [train                  ][train           ]
        main   [o][a  ]                 [o][a ]
        pool            [d    ]            [d    ]
        """,
        {"o": "send"},
        {"o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}], "d": [{"_ct": 1, "_c": 1}, {"_ct": 1, "_c": 2}]},
    )
    (sync,) = synchronizing(trace)
    # Behind the first wait 16 µs follow, 7 of them computing; behind the second 10, of which the pool still
    # computes 3.
    assert (us(sync.after_ps), us(sync.computed_ps)) == ([9, 7], [7, 7])


def test_the_costliest_wait_comes_first() -> None:
    first, second = found_in(
        """
        main  [train                        ][train                     ]
        main  [u           ][w             ] [u      ][w               ]
        main   [d   ][a  ]   [d ][f ]         [d ][a] [d ][f ]
        """
    )
    assert (first.culprit.name, second.culprit.name) == ("loss", "update")
    assert first.after_ps.sum() > second.after_ps.sum()
    assert us(first.of_step(1).after_ps) == us(first.after_ps[1:])
    assert first.of_step(1).per_step.tolist() == [1]


@pytest.mark.parametrize(
    "text",
    ["main [u  ]\nmain [a ]", "main [train   ]\nmain  [d ]", "main [train   ]\nmain  [d ]\nother    [a ]"],
)
def test_without_a_wait_on_the_steps_thread_there_is_none(text: str) -> None:
    assert found_in(text) == ()


def test_waits_outside_of_steps_count_in_none() -> None:
    trace = trace_of(
        """
        main       [train      ]      [train    ]
        main  [a  ] [d  ]       [a  ]  [d   ]    [a ]
        """
    )
    assert synchronizing(trace) == ()


def test_a_wait_without_an_event_ends_when_the_computing_does() -> None:
    """`report` does nothing while the pool computes, and ends when it is done; `update` of the second step
    goes on for long.
    """
    trace = trace_of(
        f"""
        main  [train{" " * 94}][train{" " * 94}]
        main  [o][v{" " * 57}][u{" " * 30}]     [o][u{" " * 57}]
        pool    [d{" " * 58}]{" " * 40}          [d   ]
        """,
        {"o": "send", "d": "dot.3"},
        {
            "o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}],
            "d": [{"_ct": 1, "_c": 1, "hlo_op": "x"}, {"_ct": 1, "_c": 2, "hlo_op": "x"}],
        },
    )
    (sync,) = synchronizing(trace)
    assert (sync.culprit.name, sync.per_step.tolist()) == ("report", [1, 0])


def test_a_wait_that_only_a_look_at_the_result_ends() -> None:
    """JAX without the Python tracer: the thread writes nothing while it waits, then a short event once it has
    the result.

    The first look comes at once, while the pool computes: no wait. The second ends one, of 57 µs; 38 µs of
    the step follow. In the second step the pool was done long before anyone looked.
    """
    trace = trace_of(
        f"""
        main  [train{" " * 94}][train{" " * 94}]
        main  [o][w]{" " * 57}[w]                     [o]{" " * 61}[w]
        pool    [d{" " * 58}]{" " * 40}          [d   ]
        """,
        {"o": "send", "d": "dot.3", "w": "CommonPjRtBuffer::Await"},
        {
            "o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}],
            "d": [{"_ct": 1, "_c": 1, "hlo_op": "x"}, {"_ct": 1, "_c": 2, "hlo_op": "x"}],
        },
    )
    (sync,) = synchronizing(trace)
    assert (sync.call, sync.culprit.kind, sync.per_step.tolist()) == (
        "CommonPjRtBuffer::Await",
        "call",
        [1, 0],
    )
    assert us(sync.after_ps) == [38, 0]


def test_a_call_that_returns_at_once_did_not_wait() -> None:
    """TensorFlow computes before it returns: reading a value afterwards takes 3 of 607 columns; in the second
    step it waits for 12.
    """
    trace = trace_of(
        f"""
        main  [train{" " * 600}][train{" " * 600}]
        main  [u{" " * 590}]     [u{" " * 590}]
        main   [d{" " * 300}][a][s{" " * 200}]           [d{" " * 300}][a         ][s{" " * 200}]
        """,
        {**LEGEND, "s": "$time sleep"},
        {"d": {"hlo_op": "dot.3"}},
    )
    assert [sync.per_step.tolist() for sync in synchronizing(trace)] == [[0, 1]]


def test_a_function_that_only_waits_does_not_own_the_work_after_the_wait() -> None:
    """`report` ends with its wait, so 24 columns of `update` follow; in the second step it goes on for 4
    itself.
    """
    (sync,) = found_in(
        """
        main  [train                                            ][train                                            ]
        main  [u                                      ]          [u                                      ]
        main   [d ][v         ]                                   [d ][v                 ]
        main       [a         ]                                       [a             ]
        """
    )
    assert (sync.culprit.name, sync.per_step.tolist()) == ("report", [1, 1])
    assert us(sync.after_ps) == [40 - 16, 4]
