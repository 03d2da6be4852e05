"""Functions of the user that few steps call."""

from __future__ import annotations

from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.rare_functions import rare_functions
from tests.analysis.diagnosis.drawn import planes_of, trace_of, us
from tests.builders import build

# Six steps of 9 µs, of which the middle four are shown: `update` (u) in all, `report` (v) in the second and
# fifth, in which `pack` (w, of a file that libraries have, too) runs, `once` (o) in the third. Another thread
# runs `other` (x).
STEPS = """
main   [train  ][train  ][train  ][train  ][train  ][train  ]
main   [u     ] [u     ] [u     ] [u     ] [u     ] [u     ]
main   [d    ]    [v   ] [o    ]  [d    ]   [v  ]   [d    ]
main               [w]                        [w ]
loader  [x ]              [x    ]
"""
LEGEND = {"w": "$helpers.py:9 pack", "o": "$mine.py:70 once", "x": "$mine.py:80 other"}


def test_functions_that_few_steps_call_with_their_time_in_each() -> None:
    found = rare_functions(trace_of(STEPS, LEGEND))
    assert [(one.culprit, us(one.time_ps)) for one in found] == [
        (Culprit("function", "report", "shop.py", 7), [6, 0, 0, 5]),
        (Culprit("function", "pack", "helpers.py", 9), [3, 0, 0, 4]),
    ]


def test_frames_of_libraries_are_not_the_users() -> None:
    text = STEPS.replace("v", "q")
    legend = {**LEGEND, "q": "$queue.py:154 get"}
    assert rare_functions(trace_of(text, legend)) == ()


def test_without_steps_or_frames_there_are_none() -> None:
    assert rare_functions(trace_of("main [u  ] [v  ]")) == ()
    assert rare_functions(trace_of("main [train  ][train  ]\nmain [d  ]    [d  ]")) == ()


def test_a_picosecond_is_a_call() -> None:
    planes = planes_of(STEPS, LEGEND)
    for event in (event for plane in planes for line in plane.lines.values() for event in line):
        if event.name == "$shop.py:7 report":
            event.duration_ps = 1
    (report,) = [one for one in rare_functions(build(planes)) if one.culprit.name == "report"]
    assert report.time_ps.tolist() == [1, 0, 0, 1]
