"""Tables of a diagnosis: a row for each finding and for each cause, and `why` of a session."""

from __future__ import annotations

import math

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.diagnose import diagnose
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.finding import CauseTime, Culprit, Diagnosis, Evidence, Finding
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.findings_tables import causes_table, findings_table
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.why import diagnosis, plain
from tests.analysis.diagnosis.drawn import trace_of
from tests.builders import PS
from tests.tools.drawn_session import session_of

FOUND = Diagnosis(
    "bad",
    "It is slow.",
    200.0,
    3,
    (
        Finding(
            Cause.PYTHON,
            "Each step runs `update`.",
            40.0,
            0.2,
            "Nothing computes.",
            Culprit("function", "update", "mine.py", 40),
            "w",
            "of w",
            (28.0, 40.0),
            "Take it out.",
            "step()",
            (Evidence("Somewhere"), Evidence("The longest", "w", 7, 9), Evidence("Last", "x", 1, 2)),
        ),
        Finding(Cause.UNRECORDED, "Unknown.", 20.0, 0.1, confidence="low", capture_option="with_stack=True"),
        Finding(Cause.WARM_UP, "Long.", 0.0, 0.0, evidence=(Evidence("The first", "y", 0, 5),)),
    ),
    (
        CauseTime(Cause.COMPUTE, 140.0, 0.7),
        CauseTime(Cause.PYTHON, 40.0, 0.2),
        CauseTime(Cause.UNRECORDED, 20.0, 0.1),
    ),
    True,
)

UNLIKE = """
main  [train                         ][train               ][train                ]
main   [u                           ]  [u                 ]  [v        ] [u      ]
main    [g              ]  [d   ]       [g    ] [s     ]      [n     ]    [k   ]
main      [c       ]                             [d  ]          [b ]       [v]
"""


def cells(table: Table) -> dict[str, list[object]]:
    return {
        column.name: [column.strings[i] for i in column.values.tolist()]
        if column.strings is not None
        else column.values.tolist()
        for column in table.columns
    }


def test_a_row_for_each_finding() -> None:
    table = cells(findings_table(FOUND, "CPU"))
    assert table["cause"] == ["Python", "Not recorded", "Warm-up"]
    assert table["finding"] == ["Each step runs `update`.", "Unknown.", "Long."]
    assert table["culprit"] == ["update (mine.py:40)", "", ""]
    assert table["host"] == ["w", "", ""]
    assert table["time_ps"] == [40, 20, 0]
    assert table["share"] == [0.2, 0.1, 0]
    assert table["gain_low_ps"][0] == 28
    assert table["gain_high_ps"][0] == 40
    assert [math.isnan(value) for name in ("gain_low_ps", "gain_high_ps") for value in table[name][1:]] == [
        True
    ] * 4  # type: ignore[arg-type]
    assert table["confidence"] == ["high", "low", "high"]
    assert table["capture_option"] == ["", "with_stack=True", ""]
    assert table["docs"] == ["causes/python", "causes/not_recorded", "causes/warm_up"]


def test_evidence_is_shown_at_its_first_place_on_the_timeline() -> None:
    table = cells(findings_table(FOUND, "CPU"))
    assert table["evidence"] == ["Somewhere; The longest; Last", "", "The first"]
    assert table["evidence_host"] == ["w", "", "y"]
    starts, ends = table["evidence_start_ps"], table["evidence_end_ps"]
    assert (starts[0], ends[0], starts[2], ends[2]) == (7, 9, 0, 5)
    assert math.isnan(starts[1])  # type: ignore[arg-type]
    assert math.isnan(ends[1])  # type: ignore[arg-type]


def test_a_row_for_each_cause() -> None:
    table = cells(causes_table(FOUND, "CPU"))
    assert {name: table[name] for name in ("cause", "time_ps", "share")} == {
        "cause": ["Compute", "Python", "Not recorded"],
        "time_ps": [140, 40, 20],
        "share": [0.7, 0.2, 0.1],
    }


def test_of_nothing_there_are_no_rows() -> None:
    nothing = Diagnosis("unknown", "No steps.", 0.0, 0)
    tables = findings_table(nothing, "CPU"), causes_table(nothing, "CPU")
    assert {len(column.values) for table in tables for column in table.columns} == {0}


def test_what_a_drawn_run_says() -> None:
    drawn_diagnosis = diagnose([host_evidence(trace_of(UNLIKE))])
    table = cells(findings_table(drawn_diagnosis, "CPU"))
    assert table["cause"] == [one.cause.label for one in drawn_diagnosis.findings]
    row = table["culprit"].index("grow")
    assert table["time_ps"][row] == pytest.approx(17 / 3 * PS)
    assert sum(cells(causes_table(drawn_diagnosis, "CPU"))["share"]) == pytest.approx(1)  # type: ignore[arg-type]


def test_a_diagnosis_as_json() -> None:
    answer = plain(FOUND)
    assert [one["cause"] for one in answer["findings"]] == ["python", "not_recorded", "warm_up"]
    assert answer["findings"][0]["culprit"] == {
        "kind": "function",
        "name": "update",
        "file": "mine.py",
        "line": 40,
    }
    assert answer["findings"][0]["evidence"][1] == {
        "text": "The longest",
        "host": "w",
        "start_ps": 7,
        "end_ps": 9,
    }
    assert [one["gain_ps"] for one in answer["findings"]] == [[28.0, 40.0], None, None]
    assert answer["causes"][0] == {"cause": "device_compute", "time_ps": 140.0, "share": 0.7}
    assert (answer["level"], answer["n_steps"], answer["is_detailed"]) == ("bad", 3, True)


def test_one_step_of_several_hosts_is_that_step_of_each() -> None:
    """The second host has two steps, of 22 and 12 µs."""
    second_host = trace_of(
        "main  [train               ][train     ]\nmain   [u                ]  [d      ]\nmain    [d  ]"
    )
    session = session_of(trace_of(UNLIKE), second_host)
    assert diagnosis(session, (), "1").step_time_ps == (22 + 12) / 2 * PS
    assert diagnosis(session, (), "train 2").step_time_ps == 23 * PS
    assert diagnosis(session, ("worker-1",)).step_time_ps == (22 + 12) / 2 * PS
    with pytest.raises(BadParameter, match="step"):
        diagnosis(session, ("worker-1",), "2")
