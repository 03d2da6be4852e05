"""Copies on a pool's threads: of the function that requested them, else of the program they are for."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.parts import parts
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import rows, trace_of, us

LEGEND = {
    "o": "send",
    "q": "ThreadpoolListener::StartRegion",
    "r": "ThreadpoolListener::Record",
    "t": "H2D Dispatch",
    "w": "$shop.py:80 send",
    "y": "$queue.py:154 put",
}


def copying(text: str) -> Trace:
    """The trace of a drawing whose i-th Record hands the i-th region over."""
    handing, regions = "r" if "[r]" in text else "o", text.count("[q")
    return trace_of(
        text,
        LEGEND,
        {
            handing: [{"_pt": 1, "_p": i + 1} for i in range(regions)],
            "q": [{"_ct": 1, "_c": i + 1} for i in range(regions)],
        },
    )


def copies(text: str) -> dict[tuple[str, str], list[float]]:
    """(culprit, call) → time of copies in each step."""
    found = rows(parts(copying(text)))
    return {(name, call): time for (cause, name, _, call), time in found.items() if cause == Cause.TRANSFERS}


def test_a_copy_is_of_the_function_that_requested_it_or_of_the_program_that_did() -> None:
    """Requested by `update`, by `grow` within it, and outside functions after a call of `grow`."""
    assert copies(
        """
        main  [train                                 ][train                  ][train               ]
        main  [u                ]                      [u      ]               [v ]
        main    [r]                                     [g   ]                    [g ][r]
        main                                             [r]
        pool         [q          ]                            [q       ]                [q     ]
        pool          [t    ]                                   [t ]                      [t]
        """
    ) == {("update", ""): [7, 0, 0], ("", "grow"): [0, 4, 3]}


def test_the_innermost_function_that_runs_at_the_request_is_the_one() -> None:
    """`report` within `update`; `update` after `report` has ended; `update` around a frame of a library."""
    assert copies(
        """
        main  [train                                 ][train                  ][train               ]
        main  [u                ]                      [u            ]          [u          ]
        main   [v       ]                               [v ]                     [y      ]
        main      [r]                                        [r]                   [r]
        pool         [q          ]                            [q       ]             [q     ]
        pool          [t    ]                                   [t ]                   [t]
        """
    ) == {("report", ""): [7, 0, 0], ("update", ""): [0, 4, 3]}


def test_a_function_that_a_program_runs_requests_for_the_program() -> None:
    assert copies(
        """
        main  [train                                 ][train                  ]
        main  [u                ]                      [d  ]
        main   [g          ]
        main    [v       ]
        main      [r]
        pool         [q          ]
        pool          [t    ]
        """
    ) == {("", "grow"): [7, 0]}


def test_without_a_record_a_copy_is_for_the_program_called_last_before_it() -> None:
    """None before the first one; the outer one of two calls; calls of other threads do not count."""
    assert copies(
        """
        main   [train                                    ][train                  ]
        main   [o][o]                [g       ]            [o] [h  ]
        main                           [h ]
        other      [h ]                                      [g  ]
        pool       [q      ]                  [q   ]                 [q     ]
        pool        [t   ]                      [t]                   [t  ]
        """
    ) == {("", ""): [6, 0], ("", "grow"): [3, 0], ("", "shrink"): [0, 5]}


@pytest.mark.parametrize(
    ("copied", "computed_us"),
    [("[t    ]", 20 - 7), ("[t    ][t  ]", 20 - 7 - 5), ("[t       ]", 20 - 10)],
)
def test_what_a_region_does_beside_copies_stays_computing(copied: str, computed_us: int) -> None:
    trace = trace_of(
        f"""
        main  [train                         ][train               ]
        main  [o]                             [d  ]
        pool        [region            ]
        pool           {copied}
        """,
        {**LEGEND, "region": "Run region"},
        {"o": {"_pt": 1, "_p": 1}, "region": {"_ct": 1, "_c": 1}},
    )
    found = parts(trace)
    elsewhere = [one for one in found if one.cause == Cause.COMPUTE]
    assert us(sum(one.time_ps for one in elsewhere))[0] == computed_us
    moved = [one for one in found if one.cause == Cause.TRANSFERS]
    assert us(sum(one.time_ps for one in moved)) == [20 - computed_us, 0]
    assert {one.culprit for one in moved} == {Culprit()}


def test_a_copy_within_a_copy_is_one() -> None:
    trace = trace_of(
        """
        main  [train                         ][train               ]
        main  [o]                             [d  ]
        pool        [region            ]
        pool           [t         ]
        pool            [z   ]
        """,
        {**LEGEND, "region": "Run region", "z": "DevicePut"},
        {"o": {"_pt": 1, "_p": 1}, "region": {"_ct": 1, "_c": 1}},
    )
    (copy,) = [one for one in parts(trace) if one.cause == Cause.TRANSFERS]
    assert us(copy.time_ps) == [12, 0]
    assert copy.n == 1
