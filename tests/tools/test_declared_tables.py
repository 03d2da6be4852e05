"""The classes that declare tables and numbers: what they accept, what they fill in, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.tools.base import MAX_TIME_PS, Availability, Declaration, File, Param, Question, missing
from tb_tpuprof.tools.payload import Column, Payload, Scalar, Table
from tb_tpuprof.tools.spec import (
    ColumnSpec,
    DeclarationError,
    Number,
    ScalarSpec,
    TableSpec,
    Texts,
    fill_scalars,
    flag,
    known_texts,
    number,
    text,
)

NAME = text("name", "Name", "Its name", unknown="nameless")
TIME = number("time_ps", "Time", "ps", "Its time", formula="end − start", unknown="not timed")
IS_OPEN = flag("is_open", "Open", "Whether it is open", is_optional=True)
SPEC = TableSpec("things", "Things", (NAME, TIME, IS_OPEN), "All things", chart="donut")
STEPS = ScalarSpec("n_steps", "Steps", "count", "Number of steps", unknown="no steps", formula="Σ steps")


def shown(column: Column) -> list[object]:
    """The cells of a column; unknown texts are None."""
    values = np.asarray(column.values).tolist()
    return values if column.strings is None else [column.strings[i] if i >= 0 else None for i in values]


def test_columns_are_declared_with_all_they_say() -> None:
    assert (NAME.kind, NAME.unit, NAME.unknown, NAME.is_optional) == ("text", "", "nameless", False)
    assert (TIME.kind, TIME.unit, TIME.formula, TIME.unknown) == ("number", "ps", "end − start", "not timed")
    assert (IS_OPEN.kind, IS_OPEN.unit, IS_OPEN.is_optional) == ("bool", "", True)
    assert not flag("f", "F").is_optional
    assert not number("f", "F").is_optional
    assert not text("f", "F").is_optional
    assert number("f", "F", is_optional=True).is_optional
    assert text("f", "F", is_optional=True).is_optional
    assert not TIME.delta
    assert TIME.sent_as_differences() == replace(TIME, delta=True)


def test_defaults_of_declarations_and_answers() -> None:
    """What is not stated: required, unsorted, from 0 to 2^53, with the diagnosis."""
    assert not ColumnSpec("a", "A").is_optional
    assert not ColumnSpec("a", "A").delta
    assert not TableSpec("t", "T", ()).is_optional
    assert not ScalarSpec("n", "N").is_optional
    assert not Column("a", "A", np.zeros(0)).delta
    param = Param("n", "N", "int", None, "n")
    assert (param.minimum, param.maximum, param.is_required) == (0, 2**53, False)
    assert Payload("page", "run", (), {}).is_diagnosed
    assert np.iinfo(np.int64).max == MAX_TIME_PS
    tool = Declaration("page", "Page", "group", "summary", lambda *_: payload({}, {}))
    assert (tool.needs_trace, tool.hosts, tool.tiles) == (True, "many", None)
    assert Availability()
    assert not Availability("no events")
    assert Table("T", (Column("a", "A", np.zeros(3)),)).n_rows == 3


def test_a_filled_table_has_the_declared_texts() -> None:
    table = SPEC.fill({"time_ps": [3.0, float("nan")], "name": ["b", "a"]}, "one more")
    assert [column.name for column in table.columns] == ["time_ps", "name"]
    assert (table.title, table.note, table.chart, table.description) == (
        "Things",
        "one more",
        "donut",
        "All things",
    )
    time, name = table.columns
    assert (time.title, time.unit, time.description, time.formula, time.unknown) == (
        "Time",
        "ps",
        "Its time",
        "end − start",
        "not timed",
    )
    assert shown(name) == ["b", "a"]
    assert table.n_rows == 2
    assert Table("T", ()).n_rows == 0
    assert replace(SPEC, sentence="For people").fill({"name": [], "time_ps": []}).description == "For people"


def test_a_run_may_replace_texts() -> None:
    table = SPEC.fill(
        {"name": ["a"], "time_ps": [1.0]},
        title="Other things",
        titles={"name": "Host"},
        descriptions={"name": "Host's name"},
        unknown={"time_ps": "clock stopped"},
    )
    name, time = table.columns
    assert (table.title, name.title, name.description, time.unknown) == (
        "Other things",
        "Host",
        "Host's name",
        "clock stopped",
    )
    assert (name.unknown, time.title, time.description) == ("nameless", "Time", "Its time")


def test_values_of_each_form() -> None:
    values = {
        "name": Texts(np.array([1, -1, 0]), ["x", "y"]),
        "time_ps": np.array([1, 2, 3], np.int64),
        "is_open": [True, False, 1.0],
    }
    name, time, is_open = SPEC.fill(values).columns
    assert (shown(name), shown(time), shown(is_open)) == (["y", None, "x"], [1, 2, 3], [True, False, True])
    assert (name.kind, time.kind, is_open.kind) == ("text", "number", "bool")
    assert time.values.dtype == np.int64
    repeated = SPEC.fill({"name": ["b", "a", "b"], "time_ps": [1, 2, 3]}).columns
    assert repeated[0].strings == ["b", "a"]
    assert shown(repeated[0]) == ["b", "a", "b"]
    assert repeated[1].values.dtype == np.float64
    ordered = replace(SPEC, columns=(NAME.sent_as_differences(), TIME.sent_as_differences()))
    for column in (
        *ordered.fill({"name": ["a"], "time_ps": [1.0]}).columns,
        *ordered.fill({"name": Texts(np.array([0]), ["a"]), "time_ps": np.array([1.0])}).columns,
    ):
        assert column.delta


def test_empty_texts_are_unknown() -> None:
    texts = known_texts(["b", "", "a", "b"])
    assert [texts.strings[i] if i >= 0 else None for i in texts.codes.tolist()] == ["b", None, "a", "b"]
    assert texts.codes.tolist()[1] == -1


@pytest.mark.parametrize(
    ("values", "more", "message"),
    [
        ({"name": ["a"], "time_ps": [1.0], "size": [2.0]}, {}, "table things does not declare size"),
        ({"name": ["a"]}, {}, "table things lacks time_ps"),
        ({}, {}, "table things lacks name, time_ps"),
        ({"name": ["a"], "time_ps": [1.0]}, {"titles": {"x": "X"}}, "does not declare x"),
        ({"name": ["a"], "time_ps": [1.0]}, {"descriptions": {"x": "X"}}, "does not declare x"),
        ({"name": ["a"], "time_ps": [1.0]}, {"unknown": {"x": "X"}}, "does not declare x"),
        ({"name": ["a"], "time_ps": [1.0, 2.0]}, {}, "unequal lengths: name 1, time_ps 2"),
        ({"name": np.array([1.0]), "time_ps": [1.0]}, {}, "name is declared as text and filled with number"),
        (
            {"name": ["a"], "time_ps": np.array([True])},
            {},
            "time_ps is declared as number and filled with bool",
        ),
    ],
)
def test_what_is_not_declared_is_refused(values: dict, more: dict, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(DeclarationError, match=message):
        SPEC.fill(values, **more)


def test_an_empty_table_has_the_required_columns() -> None:
    table = replace(SPEC, columns=(*SPEC.columns, replace(IS_OPEN, name="is_new", is_optional=False))).empty(
        "-"
    )
    assert [(column.name, column.kind, len(column.values)) for column in table.columns] == [
        ("name", "text", 0),
        ("time_ps", "number", 0),
        ("is_new", "bool", 0),
    ]
    assert table.note == "-"


def test_tables_are_checked_by_unit_and_kind() -> None:
    table = SPEC.fill({"name": ["a"], "time_ps": [1.0]})
    SPEC.check(table)
    name, time = table.columns
    for columns, message in (
        ((name, replace(time, unit="")), "a number in no unit, declared as a number in ps"),
        ((replace(name, strings=None), time), "a number in no unit, declared as a text in no unit"),
        ((name,), "lacks time_ps"),
        ((name, time, replace(time, name="x")), "does not declare x"),
    ):
        with pytest.raises(DeclarationError, match=message):
            SPEC.check(replace(table, columns=columns))


@pytest.mark.parametrize(
    ("value", "note", "shown_note"),
    [
        (None, "", "no steps"),
        (float("nan"), "", "no steps"),
        (None, "cut", "cut"),
        (0, "", ""),
        (3, "new", "new"),
    ],
)
def test_an_unknown_number_says_why(value: float | None, note: str, shown_note: str) -> None:
    assert STEPS.of(value, note).note == shown_note


def test_scalars_are_filled_by_name() -> None:
    other = ScalarSpec("is_on", "On", is_optional=True)
    filled = fill_scalars((STEPS, other), {"is_on": False, "n_steps": Number(4, "n", "Calls", "2 + 2 = 4")})
    assert list(filled) == ["is_on", "n_steps"]
    assert filled["n_steps"] == Scalar(4, "count", "Calls", "n", "Number of steps", "Σ steps", "2 + 2 = 4")
    assert (filled["is_on"].value, filled["is_on"].title, filled["is_on"].note) == (False, "On", "")
    with pytest.raises(DeclarationError, match="no scalar n_step is declared"):
        fill_scalars((STEPS,), {"n_step": 1})


def payload(tables: dict[str, Table], scalars: dict[str, Scalar]) -> Payload:
    return Payload("page", "run", (), tables, scalars)


def test_a_question_checks_its_payload() -> None:
    spare_table = replace(SPEC, name="spare", is_optional=True)
    spare = ScalarSpec("spare_ps", "Spare", "ps", is_optional=True)
    question = Question("q", "Q", lambda *_: payload({}, {}), (), (SPEC, spare_table), (STEPS, spare))
    things, steps = SPEC.fill({"name": ["a"], "time_ps": [1.0]}), STEPS.of(1)
    question.check(payload({"things": things}, {"n_steps": steps}))
    question.check(payload({"things": things, "spare": things}, {"n_steps": steps, "spare_ps": spare.of(1)}))
    for tables, scalars, message in (
        ({}, {"n_steps": steps}, "page/q: the payload lacks table things"),
        ({"things": things}, {}, "page/q: the payload lacks scalar n_steps"),
        ({"things": things, "x": things}, {"n_steps": steps}, "does not declare table x"),
        ({"things": things}, {"n_steps": steps, "x": steps}, "does not declare scalar x in count"),
        ({"things": things}, {"n_steps": replace(steps, unit="")}, "scalar n_steps in no unit"),
        ({"things": replace(things, columns=things.columns[:1])}, {"n_steps": steps}, "lacks time_ps"),
    ):
        with pytest.raises(DeclarationError, match=message):
            question.check(payload(tables, scalars))
    assert missing((SPEC, spare_table), ["spare"]) == ["things"]


@pytest.mark.parametrize(
    ("content_type", "is_text"),
    [
        ("text/csv", True),
        ("application/json", True),
        ("application/gzip", False),
        ("application/jsonl", False),
    ],
)
def test_files_that_a_terminal_shows(content_type: str, is_text: bool) -> None:
    assert File("f", "x", content_type, lambda *_: ("f", ())).is_text == is_text
