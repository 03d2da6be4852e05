"""What `make mutate` is made of: changes, their names, the choice of tests, and a run on a tree of
its own.
"""

from __future__ import annotations

import ast
import os
import random
import textwrap
from pathlib import Path

import pytest

from tests.mutate.__main__ import ROOT, Run, chosen_tests, drawn, matching
from tests.mutate.baseline import functions
from tests.mutate.belonging import GOLDENS, Belonging
from tests.mutate.equivalent import EQUIVALENT
from tests.mutate.mutants import mutants, mutated
from tests.mutate.report import KILLED, SURVIVED, TIMEOUT, UNTESTED, Result, share_killed, table
from tests.mutate.running import workers

TREE = Belonging(ROOT)
SOURCE = textwrap.dedent(
    '''
    """A module."""
    import numpy as np
    LIMIT = 3

    def share(parts: list[int], whole: int = 0) -> float:
        """Doc."""
        if not parts:
            return 0.0
        total = sum(part for part in parts if part > 1)
        return total / whole if whole else np.max(parts, axis=0)

    class Table:
        size: int = 2

        def is_full(self) -> bool:
            rows = sorted(self.rows, key=len)
            for row in rows:
                if row is None or len(row) < self.size:
                    continue
                return all(row)
            return np.searchsorted(rows, 500, side="left") and not rows
    '''
)


def changes() -> dict[str, str]:
    return {one.key: mutated(SOURCE, one.number) for one in mutants(SOURCE)}


@pytest.mark.parametrize(
    "key",
    [
        "<module>: LIMIT = 3 → LIMIT = 4",
        "<module>: LIMIT = 3 → LIMIT = 2",
        "share: if not parts: return → without it",
        "share: not parts → parts",
        "share: part > 1 → part >= 1",
        "share: part > 1 → part > 0",
        "share: total = sum((part for part in parts if part > 1)) → "
        "total = max((part for part in parts if part > 1), default=0)",
        "share: total / whole if whole else np.max(parts, axis=0) → "
        "total * whole if whole else np.max(parts, axis=0)",
        "share: return total / whole if whole else np.max(parts, axis=0) → return total / whole",
        "share: return total / whole if whole else np.max(parts, axis=0) → return np.max(parts, axis=0)",
        "share: axis=0 → axis=1",
        "Table: size: int = 2 → size: int = 3",
        "Table.is_full: rows = sorted(self.rows, key=len) → rows = sorted(self.rows, key=len, reverse=True)",
        "Table.is_full: if row is None or len(row) < self.size: continue → without it",
        "Table.is_full: row is None or len(row) < self.size → row is not None or len(row) < self.size",
        "Table.is_full: return all(row) → return any(row)",
        "Table.is_full: return all(row) → return not all(row)",
        "Table.is_full: np.searchsorted(rows, 500, side='left') → np.searchsorted(rows, 1000, side='left')",
        "Table.is_full: side='left' → side='right'",
    ],
)
def test_the_meaning_is_changed_in_small_ways(key: str) -> None:
    assert key in changes()


def test_texts_annotations_and_documentation_are_left_alone() -> None:
    source = 'X: dict[str, int] = {}\nY = int | list[str] | None\n\n\ndef f(a: "int | None", *, b: str = "one") -> str:\n    """Doc 1."""\n    return zip(a, strict=True)\n'
    assert mutants(source) == []


def test_every_change_is_another_module_that_can_be_compiled() -> None:
    before = ast.unparse(ast.parse(SOURCE)) + "\n"
    after = list(changes().values())
    assert before not in after
    assert len(set(after)) == len(after)
    for text in after:
        compile(text, "changed", "exec")


@pytest.mark.slow
def test_changes_of_real_modules_can_be_compiled() -> None:
    chosen = drawn(TREE, TREE.modules, 200, 2, 0)
    assert len(chosen) == 200
    for module, mutant in chosen:
        source = (ROOT / module).read_text("utf-8")
        compile(mutated(source, mutant.number), module, "exec")


def test_a_change_keeps_its_name_while_the_module_is_edited_elsewhere() -> None:
    edited = SOURCE.replace("def share", "def first(x):\n    return x + 1\n\n\ndef share")
    assert set(changes()) < {one.key for one in mutants(edited)}


def test_changes_that_read_alike_have_names_of_their_own() -> None:
    keys = [one.key for one in mutants("def f(x):\n    return [x + 1, x + 1]\n")]
    assert len(set(keys)) == len(keys)
    assert "f: x + 1 → x + 2 #2" in keys


@pytest.mark.parametrize("module", sorted(EQUIVALENT))
def test_every_listed_change_is_one_of_the_module_s_and_has_a_reason(module: str) -> None:
    keys = {one.key for one in mutants((ROOT / module).read_text("utf-8"))}
    assert set(EQUIVALENT[module]) <= keys
    assert all(len(reason) > 15 for reason in EQUIVALENT[module].values())


def test_what_is_drawn_of_a_module_does_not_depend_on_others() -> None:
    some = matching(TREE, ["analysis/pod"])
    of_some = {pair for pair in drawn(TREE, some, 5 * len(some), 5, 3) if "pod/join" in pair[0]}
    of_one = set(drawn(TREE, matching(TREE, ["analysis/pod/join"]), 5, 5, 3))
    assert of_some == of_one
    assert len(of_one) == 5
    assert of_one != set(drawn(TREE, matching(TREE, ["analysis/pod/join"]), 5, 5, 4))
    assert len(drawn(TREE, matching(TREE, ["analysis/pod/join"]), 0, 5, 1)) > 200


def test_modules_outside_the_default_parts_are_mutated_when_named() -> None:
    assert {module.split("/")[1] for module in matching(TREE, [])} == {"analysis", "tools", "serve"}
    named = matching(TREE, ["ingest/heap", "sources", "native/plain/blocks"])
    assert {"tb_tpuprof/ingest/heap/pprof.py", "tb_tpuprof/sources.py"} < set(named)
    assert "tb_tpuprof/native/plain/blocks.py" in named
    assert "tb_tpuprof/ingest/heap/__init__.py" not in named
    with pytest.raises(SystemExit, match=r"No module of tb_tpuprof begins with native/compiled\."):
        matching(TREE, ["native/compiled"])


def test_files_of_tests_are_chosen_by_their_beginning() -> None:
    assert chosen_tests(TREE, []) == TREE.tests
    found = chosen_tests(TREE, ["ingest/test_heap_f", "plain/test_comm."])
    assert found == ["tests/ingest/test_heap_files.py", "tests/plain/test_comm.py"]
    with pytest.raises(SystemExit, match=r"No file of tests begins with nowhere\."):
        chosen_tests(TREE, ["ingest/test_heap_f", "nowhere"])


@pytest.mark.slow
def test_tests_belong_by_import_and_by_name() -> None:
    own_tests = TREE.own("tb_tpuprof/analysis/pod/join.py")
    assert "tests/plain/test_pod_join.py" in own_tests  # imports it
    assert "tests/analysis/pod/test_stragglers.py" in own_tests  # in the folder of its package
    assert "tests/tools/pod_viewer/test_pod_viewer.py" in TREE.own("tb_tpuprof/tools/pod_viewer/tables.py")
    # Tests of those that import it come after its own.
    all_tests = TREE.of("tb_tpuprof/analysis/pod/groups.py")
    assert set(all_tests) >= {"tests/analysis/pod/test_stragglers.py", "tests/plain/test_pod_join.py"}
    # Those that examine all tools come last for a module of a tool.
    assert "tests/tools/test_questions.py" in TREE.of("tb_tpuprof/tools/pod_viewer/channel_tables.py")
    assert "tests/tools/test_questions.py" not in all_tests
    assert not any("browser" in test for test in TREE.tests)
    assert set(GOLDENS) <= set(TREE.tests)
    assert all(TREE.of(module) for module in TREE.modules)


def test_functions_are_known_by_their_first_line_with_decorators() -> None:
    spans = functions(
        "@once\ndef f():\n    def g():\n        pass\n\n\nclass C:\n    @property\n    def p(self):\n        pass\n"
    )
    assert spans == [(1, 4, "f"), (3, 4, "f.g"), (8, 10, "C.p")]


TOY = """
LIMIT = 3


def once(function):
    kept = {}

    def known(x):
        if x not in kept:
            kept[x] = function(x)
        return kept[x]

    return known


@once
def doubled(x):
    return x * 2


def least(values):
    return min(values) + 0 * sum(value > 5 for value in values)


def count_down(n):
    while n > 0:
        n = n - 1
    return n


def nobody(x):
    return x + 1
"""
TOY_TEST = """
from tb_tpuprof.analysis.toy import LIMIT, count_down, doubled, least


def test_limit():
    assert LIMIT == 3


def test_doubled():
    assert doubled(4) == 8


def test_least():
    assert least([3, 1, 2]) == 1


def test_count_down():
    assert count_down(3) == 0
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A tree with one module and its tests."""
    for folder in ("tb_tpuprof/analysis", "tests/analysis"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "tb_tpuprof" / "__init__.py").touch()
    (tmp_path / "tb_tpuprof" / "analysis" / "toy.py").write_text(TOY, "utf-8")
    (tmp_path / "tests" / "analysis" / "test_toy.py").write_text(TOY_TEST, "utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n', "utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="changes are tried in forks")
def test_a_run_tells_what_is_noticed_from_what_is_not(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutate.__main__._START_S", 6.0)
    module = "tb_tpuprof/analysis/toy.py"
    tree = Belonging(toy)
    expected = {
        # The module is written, and its tests run in a process of their own.
        "<module>: LIMIT = 3 → LIMIT = 4": KILLED,
        "doubled: return x * 2 → return x / 2": KILLED,  # the function is held by a decorator
        "least: (value > 5 for value in values) → (value >= 5 for value in values)": SURVIVED,
        "count_down: n = n - 1 → n = n + 1": TIMEOUT,
        "nobody: return x + 1 → return x - 1": UNTESTED,
    }
    chosen = [(module, one) for one in mutants(TOY) if one.key in expected]
    assert len(chosen) == 5
    random.Random(1).shuffle(chosen)
    with workers(toy, 2, tree.of(module)) as hands:
        results = Run(tree, hands, toy / "kept", 60.0).results(chosen)
    assert {one.mutant.key: one.status for one in results} == {
        key: value for key, value in expected.items() if value
    }
    assert [one.by for one in results if one.mutant.function == "doubled"] == [
        "tests/analysis/test_toy.py::test_doubled"
    ]
    assert (toy / module).read_text("utf-8") == TOY


def test_the_report_counts_by_module_and_leaves_equivalent_ones_out() -> None:
    first, second, *_ = mutants(SOURCE)
    results = [
        Result("a", first, KILLED, f"{GOLDENS[0]}::test"),
        Result("a", second, SURVIVED),
        Result("b", first, "equivalent"),
    ]
    assert share_killed(results) == 0.5
    rows = table(results).splitlines()
    assert rows[-1] == "| all 2 | 3 | 1 | 0 | 1 | 0 | 0 | 1 | 1 | 50% |"
    assert rows[2] == "| a | 2 | 1 | 0 | 1 | 0 | 0 | 0 | 1 | 50% |"
