"""What is found does not depend on how names, events and lines are numbered, nor on how long a column is.

Each drawing is built again with each of its names as the first of the trace, on a thread of its own that
ends before the steps; with its lines in other orders; and in columns of a picosecond.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from tb_tpuprof.analysis.diagnosis.other_threads import other_threads
from tb_tpuprof.analysis.diagnosis.parts import parts
from tb_tpuprof.analysis.diagnosis.rare_functions import rare_functions
from tb_tpuprof.analysis.diagnosis.runtime_threads import concurrent_copies, concurrent_python_stages
from tb_tpuprof.analysis.diagnosis.step_calls import step_calls
from tb_tpuprof.analysis.diagnosis.synchronizing import synchronizing
from tb_tpuprof.analysis.diagnosis.tiny_calls import tiny_calls
from tb_tpuprof.analysis.diagnosis.unrecorded import gaps, short_gaps
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import planes_of
from tests.builders import PS, DrawnEvent, DrawnPlane, Stats, build


@dataclass(frozen=True)
class Drawing:
    """A trace as text, with its legend and stats."""

    text: str
    legend: Mapping[str, str]
    stats: Mapping[str, Stats | Sequence[Stats]]

    def planes(self, column_ps: int = PS) -> list[DrawnPlane]:
        return planes_of(self.text, self.legend, self.stats, column_ps)


HANDED = {"_ct": 1}
DRAWINGS = {
    "python": Drawing(
        """
        main  [train                         ][train               ][train                ]
        main   [u                           ]  [u                 ]  [v        ] [u      ]
        main    [g              ]  [d   ]       [g    ] [s     ]      [n     ]    [k   ]
        main      [c       ]                             [d  ]          [b ]       [v]
        feeder   [y      ]       [y    ]         [y      ]
        feeder    [q  ]            [q ]
        """,
        {"y": "$feeder.py:9 fill", "q": "$queue.py:122 put"},
        {},
    ),
    "copies": Drawing(
        """
        main  [train                                 ][train                  ][train               ]
        main  [u                ]                      [u      ]               [v ]
        main    [r]                                     [g   ]                    [g ][r]
        main                                             [r]
        pool         [q          ]                            [q       ]                [q     ]
        pool          [t    ]                                   [t ]                      [t]
        pool2   [t  ]
        """,
        {"r": "ThreadpoolListener::Record", "q": "ThreadpoolListener::StartRegion", "t": "H2D Dispatch"},
        {
            "r": [{"_pt": 1, "_p": i} for i in (1, 2, 3)],
            "q": [HANDED | {"_c": i} for i in (1, 2, 3)],
        },
    ),
    "callbacks": Drawing(
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
            "y": HANDED | {"_c": 2},
            "o": [{"_pt": 1, "_p": i} for i in (1, 2, 3)],
            "d": HANDED | {"_c": 1},
            "e": HANDED | {"_c": 2},
            "f": HANDED | {"_c": 3},
        },
    ),
    "compiling elsewhere": Drawing(
        """
        main  [train                   ][train               ]
        main  [o]  [g ]                  [o]    [h ]
        pool        [c        ]           [x ]     [c  ]
        """,
        {"o": "send", "x": "dot:Dot"},
        {
            "o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}],
            "c": [HANDED | {"_c": 1}, HANDED | {"_c": 2}],
            "x": HANDED | {"_c": 2},
        },
    ),
    **{
        f"within {name}": Drawing(
            f"""
            main  [{name}                                                             ]
            main   [train                 ][train              ][train            ]
            main    [d   ][a  ]   [u     ]  [r]  [h  ] [d]       [s  ]  [n ][p ]
            main                   [c  ]          [c ]                   [b]
            pool                              [q    ]
            pool                               [t ]
            """,
            {
                "w": "$mine.py:60 loss",
                "t": "H2D Dispatch",
                "d": "dot.3",
                "r": "ThreadpoolListener::Record",
                "q": "ThreadpoolListener::StartRegion",
            },
            {"d": {"hlo_op": "dot.3"}, "r": {"_pt": 1, "_p": 1}, "q": HANDED | {"_c": 1}},
        )
        for name in "wgakpc"
    },
    "waits": Drawing(
        """
        main  [train                        ][train                     ][train      ]
        main  [u           ][w             ] [u      ][w               ]  [h ]
        main   [d   ][a  ]   [d ][f ]         [d ][a] [d ][f ]             [c]
        """,
        {"f": "$array.py:10 __float__", "w": "$mine.py:60 loss", "d": "dot.3"},
        {"d": {"hlo_op": "dot.3"}},
    ),
    "rare": Drawing(
        """
        main   [train  ][train  ][train  ][train  ][train  ][train  ]
        main   [u     ] [u     ] [u     ] [u     ] [u     ] [u     ]
        main   [d    ]    [v   ] [d    ]  [d    ]   [v  ]   [d    ]
        main               [w]                        [w ]
        stages    [p    ]    [p   ]
        """,
        {"w": "$helpers.py:9 pack", "p": "PyFunc:PyFunc"},
        {},
    ),
    "gpu": Drawing(
        """
        main      [train             ][train            ][train       ]
        main       [l ][z   ][l ]      [l ]   [z ]        [l ]   [g ]
        /device:GPU:0:
        Stream #1     [k    ]  [j]        [k   ]             [k ]
        """,
        {"l": "cudaLaunchKernel", "z": "cudaStreamSynchronize", "k": "gemm", "j": "ncclAllReduce"},
        {"l": [{"correlation_id": i} for i in (1, 2, 3, 4)], "k": [{"correlation_id": i} for i in (1, 3, 4)]},
    ),
}


def found_in(trace: Trace, column_ps: int = PS) -> dict[str, object]:
    """All that is found about the steps, in columns of the drawing."""

    def columns(times: npt.ArrayLike) -> list[int]:
        return (np.asarray(times) // column_ps).tolist()  # type: ignore[no-any-return]

    def place(*times: int) -> tuple[int, ...]:
        return tuple(time if time < 0 else time // column_ps for time in times)

    return {
        "parts": sorted(
            (one.cause.value, one.klass, one.culprit.name, one.caller.name, one.call, columns(one.time_ps))
            for one in parts(trace)
        ),
        "stretches": sorted((one.n, *place(one.first_ps, one.last_ps)) for one in parts(trace)),
        "gaps": {(one.before, one.after, *columns(one.time_ps), *place(one.first_ps)) for one in gaps(trace)},
        "short gaps": columns(short_gaps(trace)),
        "waits": [
            (
                one.call,
                one.culprit,
                one.per_step.tolist(),
                columns(one.after_ps),
                columns(one.before_dispatch_ps),
            )
            for one in synchronizing(trace)
        ],
        "calls": {(one.kind, one.name, *one.per_step.tolist()) for one in step_calls(trace).all},
        "rare": [(one.culprit, columns(one.time_ps)) for one in rare_functions(trace)],
        "tiny": (tiny_calls(trace).names, columns(tiny_calls(trace).computed_ps)),
        "threads": sorted(other_threads(trace), key=lambda one: one.thread),
        "runtime": (concurrent_copies(trace), concurrent_python_stages(trace)),
    }


@cache
def expected_of(kind: str) -> dict[str, object]:
    """What is found in a drawing as it is."""
    return found_in(build(DRAWINGS[kind].planes()))


CASES = [
    (kind, name)
    for kind, drawing in DRAWINGS.items()
    for name in sorted(
        {event.name for plane in drawing.planes() for line in plane.lines.values() for event in line}
    )
]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_any_name_can_be_the_first(kind: str, name: str) -> None:
    planes = DRAWINGS[kind].planes()
    planes[0].lines = {"before": [DrawnEvent(name, 0, PS)], **planes[0].lines}
    assert found_in(build(planes)) == expected_of(kind)


@pytest.mark.parametrize("kind", DRAWINGS)
def test_any_thread_can_begin_earlier(kind: str) -> None:
    expected = expected_of(kind)
    for at in range(len(DRAWINGS[kind].planes()[0].lines)):
        planes = DRAWINGS[kind].planes()
        list(planes[0].lines.values())[at].insert(0, DrawnEvent("noise", 0, PS))
        assert found_in(build(planes)) == expected


@pytest.mark.parametrize("kind", DRAWINGS)
def test_lines_can_be_in_any_order(kind: str) -> None:
    expected = expected_of(kind)
    n_lines = len(DRAWINGS[kind].planes()[0].lines)
    for order in itertools.permutations(range(n_lines)):
        planes = DRAWINGS[kind].planes()
        lines = list(planes[0].lines.items())
        planes[0].lines = dict(lines[i] for i in order)
        assert found_in(build(planes)) == expected


@pytest.mark.parametrize("kind", DRAWINGS)
def test_a_column_can_be_a_picosecond(kind: str) -> None:
    """Except for waits: 2% of a step are less than that."""
    found = found_in(build(DRAWINGS[kind].planes(1)), 1)
    assert found | {"waits": ()} == expected_of(kind) | {"waits": ()}


@pytest.mark.parametrize("kind", DRAWINGS)
def test_steps_can_begin_with_the_trace(kind: str) -> None:
    """All times moved to where the first step begins."""
    expected = dict(expected_of(kind))
    planes = DRAWINGS[kind].planes()
    events = [event for plane in planes for line in plane.lines.values() for event in line]
    first = min(event.start_ps for event in events)
    for event in events:
        event.start_ps -= first
    moved = found_in(build(planes))
    for key in ("stretches", "gaps"):
        assert len(moved.pop(key)) == len(expected.pop(key))  # type: ignore[arg-type]
    assert moved == expected
