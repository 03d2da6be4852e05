"""Which tests belong to a module: those that import it, are named after it or are in the folder of its
package, then those of the modules that import it. All other tests that enter a mutated function come last.

Goldens come last: they detect changes, not errors, so the report counts what only they detect. Browser tests
and tests that run other programs are not used.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path

PACKAGE = "tb_tpuprof"
PARTS = ("analysis", "tools", "serve")
_COMPILED = f"{PACKAGE}/native/compiled/"  # other sources do not change the compiled modules
GOLDENS = ("tests/test_golden.py", "tests/test_device_goldens.py", "tests/test_wide_goldens.py")
# Read what all modules of tools declare at import.
_OF_ALL_TOOLS = (
    "tests/tools/test_questions.py",
    "tests/tools/test_declarations.py",
    "tests/test_generated.py",
)
_NOT_USED = (
    "tests/browser/", "tests/conformance/", "tests/integration/", "tests/mutate/",
    "tests/test_packaging.py", "tests/exam/test_small.py", "tests/truth/test_input.py", "tests/truth/test_jax_cpu.py",
    "tests/truth/test_memory_facts.py", "tests/truth/test_ops_tf.py", "tests/truth/test_tf_data.py",
)  # fmt: skip


class Belonging:
    """The tree at `root`; paths are relative to it, with slashes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._files = cache(self._found)
        self.own = cache(self._own)

    @cached_property
    def modules(self) -> list[str]:
        """Modules that are mutated unless others are named."""
        return [path for path in self.every if path.split("/")[1] in PARTS]

    @cached_property
    def every(self) -> list[str]:
        """Modules that can be mutated."""
        return [
            path
            for path in self._files(PACKAGE)
            if not path.endswith("/__init__.py") and not path.startswith(_COMPILED)
        ]

    @cached_property
    def tests(self) -> list[str]:
        """Test files that are used."""
        paths = [path for path in self._files("tests") if path.rpartition("/")[2].startswith("test_")]
        return [path for path in paths if not path.startswith(_NOT_USED)]

    @cached_property
    def helpers(self) -> list[str]:
        """Modules of the tests that contain no tests."""
        return [path for path in self._files("tests") if not path.rpartition("/")[2].startswith("test_")]

    def _own(self, module: str) -> list[str]:
        """Test files that import a module, are named after it or its package, or are in its folder."""
        names, folder = _names(module), _test_folder(module)
        return [
            test
            for test in self.tests
            if dotted(module) in self._imported[test]
            or test.rpartition("/")[0] == folder
            or _bears(test.rpartition("/")[2], names)
        ]

    def of(self, module: str) -> list[str]:
        """Test files that belong to a module, its own first; if there are none, those of its part. Then those
        that examine all tools, for a module of a tool.
        """
        users = [path for path in self._files(PACKAGE) if dotted(module) in self._imported[path]]
        test_files = _once([*self.own(module), *(test for user in users for test in self.own(user))])
        part = f"tests/{module.split('/')[1]}/"
        of_all = _OF_ALL_TOOLS if module.startswith(f"{PACKAGE}/tools/") else ()
        return _once([*(test_files or [test for test in self.tests if test.startswith(part)]), *of_all])

    def _found(self, folder: str) -> list[str]:
        return sorted(path.relative_to(self.root).as_posix() for path in (self.root / folder).rglob("*.py"))

    @cached_property
    def _imported(self) -> dict[str, frozenset[str]]:
        """The modules that each file imports."""
        paths = [*self._files(PACKAGE), *self.tests]
        modules = {dotted(path) for path in paths}
        return {path: _imports((self.root / path).read_text("utf-8"), modules) for path in paths}


def dotted(path: str) -> str:
    """The module name of a path."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imports(source: str, module_names: Iterable[str]) -> frozenset[str]:
    imported = set[str]()
    for node in _statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return frozenset(imported & set(module_names))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements below a node, with the handlers and cases that contain some."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from _statements(child)


def _names(module: str) -> tuple[str, ...]:
    """Names that test files may have: `join`, `pod_join`, `pod`."""
    *folders, name = module.removesuffix(".py").split("/")
    package = folders[-1]
    return (name,) if len(folders) < 3 else (name, f"{package}_{name}", package)


def _test_folder(module: str) -> str:
    """The folder with the tests of a package's modules; empty for modules of no package."""
    folders = module.split("/")[1:-1]
    return "/".join(("tests", *folders)) if len(folders) > 1 else ""


def _bears(test: str, names: tuple[str, ...]) -> bool:
    name = test.removeprefix("test_").removesuffix(".py")
    return any(name == one or name.startswith(f"{one}_") for one in names)


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
