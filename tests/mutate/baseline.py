"""What each test does without mutants: whether it passes, how long it takes, and which functions it enters.

Cached in `build/mutate/`, keyed by the package, the tests' helpers and the test file itself.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.mutate.belonging import GOLDENS, PACKAGE, Belonging
from tests.mutate.mutants import MODULE

_LIMIT_S = 900.0
_SUFFIXES = (".py", ".so", ".txt", ".pxd")
Answers = dict[str, Any]


@dataclass(frozen=True)
class Test:
    """A test. `entered`: functions of the package, as (path, qualified name)."""

    name: str
    seconds: float
    entered: frozenset[tuple[str, str]]

    @property
    def file(self) -> str:
        """The file that defines it."""
        return self.name.partition("::")[0]

    @cached_property
    def modules(self) -> frozenset[str]:
        """Modules of which it enters a function."""
        return frozenset(path for path, _ in self.entered)


class Baseline:
    """Tests by file. `run` sends jobs to workers; `imported`: functions that run while tests are
    collected.
    """

    def __init__(
        self,
        tree: Belonging,
        kept: Path,
        run: Callable[[Sequence[Answers], Callable[[int, Answers], None]], list[Answers]],
        imported: Iterable[str] = (),
    ) -> None:
        self.tree, self.kept, self.run = tree, kept, run
        self.files: dict[str, list[Test]] = {}
        self._functions: dict[str, list[tuple[int, int, str]]] = {}
        self.imported = set(map(self._function, imported))

    def learn(self, files: Iterable[str]) -> None:
        """Run the files that are not cached yet."""
        missing_files = [name for name in dict.fromkeys(files) if name not in self.files]
        unknown = [name for name in missing_files if not self._path(name).exists()]
        self.kept.mkdir(parents=True, exist_ok=True)

        def done(index: int, answer: Answers) -> None:
            if "tests" not in answer:
                print(f"*** {unknown[index]} did not finish and is left out: {answer['by']} ***", flush=True)
            self._path(unknown[index]).write_text(json.dumps(answer.get("tests", {})), "utf-8")

        self.run([{"record": name, "timeout": _LIMIT_S} for name in unknown], done)
        for name in missing_files:
            self.files[name] = [
                Test(test, told["seconds"], frozenset(map(self._function, told["entered"])))
                for test, told in json.loads(self._path(name).read_text("utf-8")).items()
                if told["outcome"] == "passed"
            ]

    def is_imported(self, module: str, function: str) -> bool:
        """Whether the code runs at import: functions called at import, and code outside functions."""
        self._function(f"{module.removeprefix(f'{PACKAGE}/')}:1")
        import_names = {name for _, _, name in self._functions[module]}
        return function not in import_names or (module, function) in self.imported

    def chosen(self, module: str, function: str, limit_s: float) -> list[Test]:
        """Tests that enter a mutated function, up to `limit_s` seconds in total.

        Order: tests of the module's own files, of its users' files, then all others; within each, the fastest
        first. Then the other tests of its own files, which may read what an earlier test cached. For code
        that runs at import, the tests that belong to the module, and all that enter any of its functions.
        Finally, all goldens of the files of which one enters it, however long they take.
        """
        own_files, belonging = set(self.tree.own(module)), self.tree.of(module)
        place = (module, function)
        listed = [test for tests in self.files.values() for test in tests]
        if self.is_imported(*place):
            others = [test for test in listed if test.file not in GOLDENS]
            enter = [test for test in others if test.file in belonging or module in test.modules]
            goldens = self._goldens()
        else:
            every = [test for test in listed if place in test.entered]
            enter = [test for test in every if test.file not in GOLDENS]
            entering = {test.file for test in every}
            goldens = [test for test in self._goldens() if test.file in entering]
        near = {file: 0 if file in own_files else 1 for file in belonging}
        first = sorted(enter, key=lambda test: (near.get(test.file, 2), test.seconds))
        chosen_names, files = {test.name for test in first}, {test.file for test in first}
        rest = [
            test for file in own_files & files for test in self.files[file] if test.name not in chosen_names
        ]
        chosen: list[Test] = []
        spent = 0.0
        for test in (*first, *sorted(rest, key=lambda test: test.seconds)):
            spent += test.seconds
            if spent > limit_s and chosen:
                break
            chosen.append(test)
        return chosen + goldens

    def _goldens(self) -> list[Test]:
        return [test for file in GOLDENS for test in self.files.get(file, ())]

    def _path(self, file: str) -> Path:
        text = (self.tree.root / file).read_bytes()
        return self.kept / f"{hashlib.sha256(self._around + text).hexdigest()[:24]}.json"

    @cached_property
    def _around(self) -> bytes:
        """Hash of everything that tests depend on, except the test files."""
        files = [
            path.relative_to(self.tree.root).as_posix()
            for path in (self.tree.root / PACKAGE).rglob("*")
            if path.suffix in _SUFFIXES
        ]
        digest = hashlib.sha256()
        for name in (*sorted(files), *self.tree.helpers):
            if "/mutate/" not in name:
                digest.update(name.encode() + (self.tree.root / name).read_bytes())
        return digest.digest()

    def _function(self, place: str) -> tuple[str, str]:
        """The function that starts at a line."""
        path, _, line = place.replace("\\", "/").rpartition(":")
        module = f"{PACKAGE}/{path}"
        if module not in self._functions:
            self._functions[module] = functions((self.tree.root / module).read_text("utf-8"))
        inside = [one for one in self._functions[module] if one[0] <= int(line) <= one[1]]
        return module, max(inside)[2] if inside else MODULE


def functions(source: str) -> list[tuple[int, int, str]]:
    """First line (of the decorators), last line and qualified name of every function."""
    spans: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{outer}.{child.name}" if outer else child.name
                if not isinstance(child, ast.ClassDef):
                    first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                    spans.append((first, child.end_lineno or child.lineno, name))
                visit(child, name)
            else:
                visit(child, outer)

    visit(ast.parse(source), "")
    return spans
