"""Copies and tf.data's Python functions on the runtime's threads."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.records import NO_POOLS, Pools
from tb_tpuprof.analysis.diagnosis.runtime_threads import (
    _COPIES,
    _mean_concurrent,
    concurrent_copies,
    concurrent_python_stages,
)
from tests.analysis.diagnosis.drawn import trace_of

# Steps of 24, 18 and 9 columns.
STEPS = """
main             [train                 ][train           ][train  ]
main             [d  ]                   [d  ]             [d  ]
"""
LEGEND = {"e": "H2D Dispatch", "f": "PyFunc:PyFunc", "q": "Iterator::Prefetch", "d": "dot:Dot"}


def test_python_stages_count_on_other_threads_and_within_steps() -> None:
    """20 of 51 µs on one thread, of which one is inside another and 4 are before the first step, and 10 on a
    second; own ones do not count.
    """
    trace = trace_of(
        """
        main             [train                 ][train           ][train  ]
        main               [f    ]   [d  ]        [d  ]             [d  ]
        tf_data/1    [f       ]     [f            ]
        tf_data/1                     [f  ]
        tf_data/2                                    [f       ]
        tf_data/3            [q            ]
        """,
        LEGEND,
    )
    assert concurrent_python_stages(trace) == (6 + 15 + 10) / 51


def test_without_steps_or_copies_nothing_is_concurrent() -> None:
    assert concurrent_copies(trace_of("main    [d   ]", LEGEND)) == 0
    assert concurrent_copies(trace_of(STEPS, LEGEND)) == 0
    assert concurrent_python_stages(trace_of(STEPS, LEGEND)) == 0


@pytest.mark.parametrize("has_gpu", [False, True])
def test_processors_are_short_only_where_the_host_itself_computes(
    has_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU's speed does not depend on the host's threads: processors missing in the host's pool are no
    gain.
    """
    short = Pools(2, 2.0)
    monkeypatch.setattr("tb_tpuprof.analysis.diagnosis.evidence.pools", lambda _trace: short)
    gpu = (
        "/device:GPU:0:\nStream #1(Compute)   [k      ]            [k      ]             [k ]\n"
        if has_gpu
        else ""
    )
    trace = trace_of(f"/host:CPU:\n{STEPS.lstrip()}{gpu}", {**LEGEND, "k": "gemm"})
    assert host_evidence(trace).pools == (NO_POOLS if has_gpu else short)


def test_copies_during_nothing_are_none() -> None:
    trace = trace_of(f"{STEPS}\ncopies [e    ]", LEGEND)
    moment = np.array([5])
    assert _mean_concurrent(trace, _COPIES, moment, moment) == 0
    assert _mean_concurrent(trace, _COPIES, moment[:0], moment[:0]) == 0
