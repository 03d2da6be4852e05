"""What events are part of: steps, categories and programs, on drawn traces with unlike parts."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.query import facts as module
from tb_tpuprof.analysis.query.facts import (
    Codes,
    event_categories,
    event_modules,
    event_steps,
    step_numbers,
)
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build, drawing


def texts(trace: Trace, codes: Codes) -> list[tuple[str, str]]:
    """(name, text) of each event; `-` is none."""
    assert codes.of.min(initial=-1) >= -1
    names = [trace.strings[int(trace.event_names[row])] for row in trace.events["metadata"].tolist()]
    found = ["-" if code < 0 else codes.texts[code] for code in codes.of.tolist()]
    return list(zip(names, found, strict=True))


def grouped(first: int, second: int) -> Trace:
    """Two steps with these group numbers, and an event outside of them."""
    return drawing(
        """
        main   [train        ] [train        ]  [after ]
        main      [a ]            [b ]
        """,
        {
            "train": [
                {"group_id": first, "step_name": "train 7"},
                {"group_id": second, "step_name": "train 9"},
            ],
            "a": {"group_id": first},
            "b": {"group_id": second},
        },
    )


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (3, 8), (5, 1004), (5, 1003), (7, 100_000)])
def test_the_step_of_an_event_is_the_one_that_it_was_grouped_into(numbers: tuple[int, int]) -> None:
    """However large the groups' numbers are."""
    trace = grouped(*numbers)
    assert texts(trace, event_steps(trace)) == [
        ("train", "train 7"),
        ("a", "train 7"),
        ("train", "train 9"),
        ("b", "train 9"),
        ("after", "-"),
    ]
    used = set(event_steps(trace).of.tolist())
    assert len(used) == 3
    assert len(event_steps(trace).texts) <= 1005


def test_without_groups_the_step_is_the_one_in_which_an_event_begins() -> None:
    """Marks that are no roots group nothing; a mark without duration counts as a picosecond."""
    marks = [("train", 10, 10, 7), ("train", 30, 12, 8), ("eval", 50, 0, 9)]
    events = [DrawnEvent(name, at, took, {"step_num": number}) for name, at, took, number in marks]
    starts = (("a", 9), ("b", 10), ("c", 19), ("d", 20), ("e", 41), ("f", 42), ("g", 50), ("h", 51))
    others = [DrawnEvent(name, at, 3) for name, at in starts]
    trace = build([DrawnPlane("/host:CPU", {"other": others, "main": events})])
    assert not groups(trace).names
    assert texts(trace, event_steps(trace))[:8] == [
        ("a", "-"),
        ("b", "train 7"),
        ("c", "train 7"),
        ("d", "-"),
        ("e", "train 8"),
        ("f", "-"),
        ("g", "eval 9"),
        ("h", "-"),
    ]


def test_without_steps_no_event_has_one() -> None:
    trace = drawing("main [a ][b ]")
    assert (event_steps(trace).of.tolist(), event_steps(trace).texts) == ([-1, -1], ())


def test_the_number_of_a_step_is_at_the_end_of_its_name() -> None:
    names = ("train 17", "17", "train", "0", "", "train 1x", "a b 3")
    assert step_numbers(names).tolist() == [17, 17, -1, 0, -1, -1, 3]
    assert step_numbers(()).tolist() == []


def tpu() -> Trace:
    """Operations of three programs, one of which begins before the others, and a host's thread."""
    modules = [DrawnEvent("f", 10, 20), DrawnEvent("g", 40, 10), DrawnEvent("f", 60, 0)]
    ops = [
        DrawnEvent("early", 0, 5),
        DrawnEvent("dot", 10, 5),
        DrawnEvent("add", 29, 5),
        DrawnEvent("between", 30, 5),
        DrawnEvent("dot", 45, 9),
        DrawnEvent("add", 60, 1),
        DrawnEvent("late", 61, 1),
    ]
    categories = {"dot": {"hlo_category": "convolution"}, "add": {"hlo_category": "loop fusion"}}
    plane = DrawnPlane("/device:TPU:0", {"XLA Modules": modules, "XLA Ops": ops}, metadata_stats=categories)
    return build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("launch", 12, 5)]}), plane])


def test_the_program_of_an_operation_is_the_one_that_runs_when_it_begins() -> None:
    trace = tpu()
    assert texts(trace, event_modules(trace)) == [
        ("launch", "-"),
        ("f", "f"),
        ("g", "g"),
        ("f", "f"),
        ("early", "-"),
        ("dot", "f"),
        ("add", "f"),
        ("between", "-"),
        ("dot", "g"),
        ("add", "f"),
        ("late", "-"),
    ]
    assert event_modules(trace).texts == ("f", "g")


def test_the_category_of_an_operation_is_the_recorded_one() -> None:
    trace = tpu()
    found = {name: text for name, text in texts(trace, event_categories(trace)) if text != "-"}
    assert found == {"dot": "convolution", "add": "loop fusion"}
    assert event_categories(trace).texts == ("convolution", "loop fusion")


def test_a_trace_without_events_has_no_facts() -> None:
    for fact in (event_steps, event_categories, event_modules):
        assert (fact(build([])).of.tolist(), fact(build([])).texts) == ([], ())


def test_titles_of_programs_are_numbered_as_they_come() -> None:
    numbers: dict[str, int] = {}
    assert [module._title(title, numbers) for title in ("f", "", "g", "f")] == [0, -1, 1, 0]
    assert numbers == {"f": 0, "g": 1}
