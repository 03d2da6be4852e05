"""Compute lost to a concurrent thread."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.moved_parts import (
    lost_to_copies,
    lost_to_own_python,
    lost_to_producers,
    lost_to_threads,
)
from tb_tpuprof.analysis.diagnosis.pools import pools
from tb_tpuprof.analysis.diagnosis.records import NO_POOLS, Pools, ThreadActivity
from tests.analysis.diagnosis.drawn import function, part, rows, trace_of

SPIN = function("spin", "work.py", 3)
FILL = function("fill", "feeder.py", 9)
BUSY = ThreadActivity("worker", SPIN, 0.5, 0.5, False)


@pytest.mark.parametrize(
    ("found", "running", "lost"),
    [
        (Pools(2, 2.0), 1.0, 1 / 3),  # three runnable threads on two processors
        (Pools(2, 2.6), 1.0, 1 / 3),  # a third thread of pools only waits for the others
        (Pools(4, 2.0), 1.0, 0.0),  # two processors are free
        (Pools(4, 4.0), 0.5, 1 / 9),
        (NO_POOLS, 1.0, 0.0),
    ],
)
def test_what_is_lost_is_what_the_processors_lack(found: Pools, running: float, lost: float) -> None:
    assert found.lost(running) == pytest.approx(lost)


def test_of_computing_that_share_is_the_threads() -> None:
    parts = (part(Cause.COMPUTE, 90, 180, 270), part(Cause.PYTHON, 10, 20, 30))
    assert rows(lost_to_threads(parts, [BUSY], Pools(4, 4.0))) == {
        (Cause.COMPUTE, "", "", ""): [80, 160, 240],
        (Cause.CONTENTION, "spin", "", ""): [10, 20, 30],
        (Cause.PYTHON, "", "", ""): [10, 20, 30],
    }
    assert lost_to_threads(parts, [BUSY], Pools(8, 4.0)) == parts
    assert lost_to_threads(parts, [], Pools(4, 4.0)) == parts


def test_copies_producers_and_own_python_take_their_share_of_computing() -> None:
    parts = (
        part(Cause.COMPUTE, 90, 180, 270),
        part(Cause.TRANSFERS, 1, 2, 3, culprit=SPIN, call="device_put"),
    )
    assert rows(lost_to_copies(parts, 0.5, Pools(4, 4.0))) == {
        (Cause.COMPUTE, "", "", ""): [80, 160, 240],
        (Cause.TRANSFERS, "spin", "", "device_put"): [11, 22, 33],
    }
    feeder = ThreadActivity("feeder", FILL, 0.5, 0.2, True)
    assert rows(lost_to_producers(parts, [BUSY, feeder], Pools(4, 4.0)))[Cause.INPUT, "fill", "", ""] == [
        10,
        20,
        30,
    ]
    assert lost_to_producers(parts, [BUSY], Pools(4, 4.0)) == parts
    assert rows(lost_to_own_python(parts, BUSY, Pools(4, 4.0)))[Cause.PYTHON, "spin", "", ""] == [10, 20, 30]
    assert lost_to_own_python(parts, None, Pools(4, 4.0)) == parts


def test_a_pool_has_as_many_processors_as_threads() -> None:
    """Two unlike steps of 24 and 18 µs: the first thread works for 9 + 5 µs of them, the second
    for 14 + 0.
    """
    trace = trace_of(
        """
        main             [train                 ][train           ]
        main             [o]                     [o]
        tf_XLAEigen/1       [r]      [x]            [r]  [x]
        tf_XLAEigen/2       [r]           [x]
        """,
        {"o": "send", "r": "ThreadpoolListener::StartRegion", "x": "ThreadpoolListener::StopRegion"},
        {
            "o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}],
            "r": [{"_ct": 1, "_c": 1}, {"_ct": 1, "_c": 1}, {"_ct": 1, "_c": 2}],
        },
    )
    result = pools(trace)
    assert result.n == 2
    assert result.active * (24 + 18) == pytest.approx(9 + 5 + 14)
