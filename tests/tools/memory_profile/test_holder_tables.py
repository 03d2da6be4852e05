"""Tables of who allocated a memory: modules and operations, what was there before, and lists that are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.memory.events import memory_events
from tb_tpuprof.tools.memory_profile import by_holder
from tb_tpuprof.tools.memory_profile.by_holder import holder_tables, module_sentence
from tb_tpuprof.tools.payload import Table
from tests.analysis.flame.test_module_contents import AT_PEAK, MARKS, OUTSIDE, mark
from tests.analysis.flame.test_modules import ENGINE, EVENTS, call, trace_of
from tests.payload_columns import cells
from tests.tools.inference_profile.test_words import values


def tables(folder: Path, at_us: float, marks: list[dict[str, Any]] = MARKS) -> dict[str, Table]:
    trace = trace_of(folder, [*EVENTS, *marks])
    events = memory_events(trace)
    memory = events.memories.index("cuda:0")
    span = events.of(memory)
    times = (events.start_ps[span] + 10 * 1_000_000) // 1_000_000  # the trace begins at 10 µs
    event = span.start + int((times <= at_us).sum()) - 1
    return holder_tables(trace, events, memory, event, "at the peak")


def texts(table: Table, name: str) -> list[object]:
    (column,) = (one for one in table.columns if one.name == name)
    return cells(column)


NAMES = {"Net_0/Linear_0": "Net_0 › Linear_0", "Net_0/Linear_1": "Net_0 › Linear_1"}


def test_modules_and_what_was_there_before(tmp_path: Path) -> None:
    """3557 bytes at the peak, of which 1000 are older."""
    modules = tables(tmp_path, 105)["modules"]
    rows = {
        (name, phase): numbers
        for name, phase, *numbers in zip(
            texts(modules, "module"),
            texts(modules, "phase"),
            *(
                values(modules, name)
                for name in (
                    "allocated_bytes",
                    "n_allocated",
                    "at_bytes",
                    "n_at",
                    "kept_bytes",
                    "n_kept",
                    "most_bytes",
                    "with_submodules_bytes",
                )
            ),
            strict=True,
        )
    }
    older = rows.pop(("(allocated before the capture)", None))
    assert rows == {(NAMES.get(name, name), phase): list(row) for (name, phase), row in AT_PEAK.items()}
    assert (older[2], older[7]) == (1000, 1000)
    assert np.isnan([older[i] for i in (0, 1, 3, 4, 5, 6)]).all()
    assert sum(values(modules, "fraction")) == pytest.approx(1)
    assert values(modules, "fraction")[0] == pytest.approx(2000 / 3557)
    assert values(modules, "fraction")[-1] == pytest.approx(1000 / 3557)
    assert modules.note == "3.47 KiB at the peak"
    titles = {column.name: column.title for column in modules.columns}
    assert (titles["at_bytes"], titles["n_at"]) == ("In use at the peak", "Allocations in use at the peak")


def test_operations_and_what_was_there_before(tmp_path: Path) -> None:
    operations = tables(tmp_path, 105)["operations"]
    rows = dict(zip(texts(operations, "op"), values(operations, "at_bytes"), strict=True))
    assert rows["aten::mm"] == 2500
    assert rows["(allocated before the capture)"] == 1000
    assert rows["(no operation recorded)"] == 50 + 7
    assert sum(rows.values()) == 3557
    assert texts(operations, "op")[0] == "aten::mm"
    assert texts(operations, "op")[-1] == "(allocated before the capture)"
    assert operations.note == "3.47 KiB at the peak"


def test_one_byte_of_before_has_a_row(tmp_path: Path) -> None:
    found = tables(tmp_path, 300, [mark(23, 1, 500, 501), mark(53, 2, 2000, 2501)])
    for name, column in (("modules", "module"), ("operations", "op")):
        assert texts(found[name], column)[-1] == "(allocated before the capture)"
        assert values(found[name], "at_bytes")[-1] == 1


def test_a_moment_at_which_nothing_is_in_use(tmp_path: Path) -> None:
    found = tables(tmp_path, 300, [mark(23, 1, 500, 500), mark(24, 1, -500, 0)])
    assert values(found["operations"], "fraction") == [0]
    assert found["operations"].note == "0 B at the peak"


def test_without_older_allocations_no_row_says_so(tmp_path: Path) -> None:
    marks = [mark(23, 1, 500, 500), mark(53, 2, 2000, 2500), mark(91, 3, 30, 2530)]
    found = tables(tmp_path, 300, marks)
    for name, column in (("modules", "module"), ("operations", "op")):
        assert "(allocated before the capture)" not in texts(found[name], column)
        assert sum(values(found[name], "fraction")) == pytest.approx(1)
        counts = next(column.values for column in found[name].columns if column.name == "n_at")
        assert np.asarray(counts).dtype.kind == "i"
        assert found[name].note == "2.47 KiB at the peak"


@pytest.mark.parametrize(("n", "cut"), [(8, ""), (7, "the first 7 of 8 · "), (1, "the first 1 of 8 · ")])
def test_long_lists_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, cut: str) -> None:
    """Eight modules and phases; the row of what was there before stays."""
    monkeypatch.setattr(by_holder, "N_ROWS", n)
    found = tables(tmp_path, 105)
    modules = found["modules"]
    assert modules.n_rows == n + 1
    assert modules.note == f"{cut}3.47 KiB at the peak"
    assert texts(modules, "module")[0] == "Net_0 › Linear_1"
    assert texts(modules, "module")[-1] == "(allocated before the capture)"
    assert values(modules, "fraction")[-1] == pytest.approx(1000 / 3557)
    operations = found["operations"]
    assert operations.n_rows == min(n, 4) + 1
    assert texts(operations, "op")[-1] == "(allocated before the capture)"


def test_the_module_with_most_memory_is_named(tmp_path: Path) -> None:
    assert module_sentence(tables(tmp_path, 105)["modules"]) == (
        "Of all modules, `Net_0 › Linear_1` had allocated the largest part of it: 56.2%, in the forward pass."
    )


@pytest.mark.parametrize(("size", "is_named"), [(1000, True), (999, False)])
def test_a_tenth_of_the_memory_is_worth_naming(tmp_path: Path, size: int, is_named: bool) -> None:
    """Outside of modules are 9,000 or 9,001 bytes, which come first."""
    marks = [mark(53, 1, size, size), mark(105, 2, 10_000 - size, 10_000)]
    modules = tables(tmp_path, 300, marks)["modules"]
    assert texts(modules, "module")[0] == OUTSIDE
    expected = (
        "Of all modules, `Net_0 › Linear_1` had allocated the largest part of it: 10.0%, in the forward pass."
    )
    assert module_sentence(modules) == (expected if is_named else "")


def test_only_what_is_known_has_a_table(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert tables(tmp_path / "a", 300, [mark(105, 2, 10, 10)]) == {}  # no allocation names an operation
    marks = [mark(105, 2, 10, 10), mark(155, 7, 40, 50, ENGINE)]
    outside = tables(tmp_path / "a", 300, marks)["modules"]
    assert texts(outside, "module") == [OUTSIDE, OUTSIDE]
    assert module_sentence(outside) == ""
    trace = trace_of(tmp_path / "b", [call("aten::mm", "cpu_op", 20, 10), mark(23, 1, 500, 500)])
    events = memory_events(trace)
    found = holder_tables(trace, events, events.memories.index("cuda:0"), 0, "at the peak")
    assert list(found) == ["operations"]
