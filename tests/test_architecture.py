"""The shape of the code, checked: who may import whom, how long things may be, and that nothing of one
machine stands in the tree.
"""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tb_tpuprof"

# A module imports from its own part and from parts of a smaller number.
LAYERS = {
    "__init__": 0, "units": 0, "errors": 0, "settings": 0, "sources": 1, "parallel": 0, "native": 0,
    "trace": 1,
    "ingest": 2,
    "analysis": 3,
    "session": 4,
    "tools": 5,
    "encode": 6,
    "capture": 6,
    "serve": 7, "cli": 7, "__main__": 8,
}  # fmt: skip
# Packages of these parts, from bottom to top: a module imports from its own package and from those before it.
ORDERS = {
    "analysis": (
        "events",
        "cpu",
        "device",
        "hlo",
        "kernels",
        "pytorch",
        "steps",
        "memory",
        "ops",
        "tf_data",
        "input",
        "inference",
        "pod",
        "dcn",
        "comm",
        "diagnosis",
        "flame",
        "overview",
        "timeline",
        "query",
        "graphs",
    ),
    "ingest": (
        "hlo",
        "riegeli",
        "storage",
        "pages",
        "graphs",
        "xspace",
        "chrome",
        "perfetto",
        "heap",
        "opening",
        "arguments",
        "evaluation",
    ),
}
# Beyond the numbers: what a part may not import, though it stands lower.
NEVER = {
    "analysis": {"ingest"},
    "capture": {"trace", "analysis", "session", "tools"},
}
# Third parties and the only parts that may import them; an empty set is nowhere.
ONLY_IN: dict[str, set[str]] = {
    "tensorflow": set(),
    "jax": set(),
    "xprof": set(),
    "tensorboard": {"serve"},
    "werkzeug": {"serve"},
    "grpc": {"capture"},
    "fsspec": {"ingest"},
    "isal": {"encode", "ingest", "tools"},
    "orjson": {"encode"},
    "brotli": {"ingest"},
    "cramjam": {"ingest"},
    "re2": {"analysis"},
}
# (module, what it imports): why. Aim: empty.
DEBTS: dict[tuple[str, str], str] = {}

PYTHON_LINES, TYPESCRIPT_LINES, FUNCTION_LINES, PARAMETERS = 600, 500, 100, 7


@pytest.fixture(scope="module", autouse=True)
def without_garbage_collection() -> Iterator[None]:
    """It would go through millions of syntax nodes again and again, and free none."""
    gc.disable()
    yield
    gc.enable()
    modules.cache_clear()
    imports.cache_clear()


def tracked(*patterns: str) -> list[Path]:
    """Files of the checkout that match, whether committed yet or not; without what git ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its path below it."""
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text("utf-8"), str(path))
        for path in tracked("tb_tpuprof/**.py")
    }


def part_of(module: str) -> str:
    """The part that a path or dotted name belongs to: the first folder or module below the package."""
    return re.split(r"[/.]", module)[0] or "__init__"


@cache
def imports(tree: ast.Module) -> tuple[str, ...]:
    """Dotted names that a module imports, wherever in it; relative imports are not used here and count as
    errors.
    """
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(names)


def forbidden(path: str, name: str) -> str | None:
    """Why a module may not import a name, or None."""
    part, head = part_of(path), name.split(".")[0]
    if head in ONLY_IN and part not in ONLY_IN[head]:
        return f"{head} belongs to {' and '.join(ONLY_IN[head]) or 'no part of the package'}"
    if head != "tb_tpuprof":
        return None
    other = part_of(name.removeprefix("tb_tpuprof").removeprefix("."))
    if other not in LAYERS:
        other = "__init__"
    if other == part:
        return None
    if LAYERS[other] >= LAYERS[part] and LAYERS[part] > 0:
        return f"{part} stands below or beside {other}"
    if LAYERS[part] == 0 and other not in ("__init__", "errors", "units"):
        return f"{part} stands below {other}"
    return f"{part} never imports {other}" if other in NEVER.get(part, set()) else None


def test_every_part_has_a_layer() -> None:
    assert {part_of(path.removesuffix(".py")) for path in modules()} <= set(LAYERS)


def test_imports_go_downward() -> None:
    wrong = [
        f"{path} imports {name}: {why}"
        for path, tree in modules().items()
        for name in imports(tree)
        if (why := forbidden(path.removesuffix(".py"), name)) and (path, name) not in DEBTS
    ]
    assert not wrong, "\n".join(wrong)


def package_of(module: str) -> tuple[str, str]:
    """The part and the package (or single module) in it that a dotted name below `tb_tpuprof` belongs to."""
    part, _, rest = module.partition(".")
    return part, rest.partition(".")[0]


def below(name: str) -> str:
    """A dotted name without the package's own."""
    return name.removeprefix("tb_tpuprof").removeprefix(".")


def test_every_package_has_a_place_in_its_part() -> None:
    names = [path.removesuffix(".py").replace("/", ".") for path in modules()]
    found = {package_of(name) for name in names if package_of(name)[0] in ORDERS}
    assert {(part, package) for part, package in found if package not in (*ORDERS[part], "__init__")} == set()


@pytest.mark.parametrize("part", ["analysis", "tools"])
def test_tests_are_in_the_folder_of_their_package(part: str) -> None:
    packages = {path.parent.name for path in (PACKAGE / part).glob("*/__init__.py")}
    tested = {path.parent.name for path in (ROOT / "tests" / part).glob("*/*.py")}
    assert tested
    assert not tested - packages


def test_packages_import_downward() -> None:
    wrong = []
    for path, tree in modules().items():
        part, package = package_of(path.removesuffix(".py").replace("/", "."))
        order = ORDERS.get(part, ())
        for name in imports(tree):
            other_part, other = package_of(below(name))
            if (
                package in order
                and other_part == part
                and other in order
                and order.index(other) > order.index(package)
            ):
                wrong.append(f"{path} imports {name}: {package} stands below {other}")
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Wherever in a module it is imported, and for types alone, too."""
    trees = {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): tree
        for path, tree in modules().items()
    }
    graph = {
        module: {
            target
            for name in imports(tree)
            if (target := _module_of(below(name), trees)) and target != module
        }
        for module, tree in trees.items()
    }
    left = dict(graph)
    while True:
        free = [module for module, targets in left.items() if not targets & left.keys()]
        if not free:
            break
        for module in free:
            del left[module]
    circle = {module: sorted(targets & left.keys()) for module, targets in left.items()}
    assert not circle, "\n".join(
        f"{module} → {', '.join(targets)}" for module, targets in sorted(circle.items())
    )


def _module_of(name: str, trees: dict[str, ast.Module]) -> str:
    """The module that a dotted name below `tb_tpuprof` is or is in; empty for none."""
    return name if name in trees else name.rpartition(".")[0] if name.rpartition(".")[0] in trees else ""


def test_debts_are_still_owed() -> None:
    everything = {(path, name) for path, tree in modules().items() for name in imports(tree)}
    assert set(DEBTS) <= everything


def is_tool(tree: ast.Module) -> bool:
    """Whether a module defines `TOOL`."""
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    annotated = [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    return any(isinstance(target, ast.Name) and target.id == "TOOL" for target in [*targets, *annotated])


def test_a_tool_never_imports_another_tool() -> None:
    tools = {path: tree for path, tree in modules().items() if path.startswith("tools/") and is_tool(tree)}
    names = {"tb_tpuprof." + path.removesuffix(".py").replace("/", ".") for path in tools}
    wrong = [
        (path, name)
        for path, tree in tools.items()
        for name in imports(tree)
        if any(name == tool or name.startswith(f"{tool}.") for tool in names)
    ]
    assert not wrong


def test_files_are_short() -> None:
    limits = {".py": PYTHON_LINES, ".pyx": PYTHON_LINES, ".ts": TYPESCRIPT_LINES, ".tsx": TYPESCRIPT_LINES}
    lengths = {
        path: len(path.read_text("utf-8").splitlines()) for path in tracked("*.py", "*.pyx", "*.ts", "*.tsx")
    }
    assert not [
        f"{path.relative_to(ROOT)}: {n} lines" for path, n in lengths.items() if n > limits[path.suffix]
    ]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of a module, nested ones and methods too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def n_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's code: signature and body without the docstring."""
    body = function.body
    documented = (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    )
    end, start = function.end_lineno or function.lineno, function.lineno
    return end - start + 1 - ((body[0].end_lineno or 0) - body[0].lineno + 1 if documented else 0)


def n_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters besides self and cls."""
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_functions_are_short_and_take_few_parameters() -> None:
    wrong = []
    for path in tracked("*.py"):
        for function in functions(ast.parse(path.read_text("utf-8"))):
            lines, parameters = n_lines(function), n_parameters(function)
            # The compiled loops pass their pointers one by one: C has no frozen dataclass.
            compiled = path.parent.name == "compiled"
            if lines > FUNCTION_LINES or (parameters > PARAMETERS and not compiled):
                wrong.append(
                    f"{path.relative_to(ROOT)}:{function.lineno}: {lines} lines, {parameters} parameters"
                )
    assert not wrong, "\n".join(wrong)


def test_every_module_opens_with_what_it_does() -> None:
    silent = [path for path, tree in modules().items() if not ast.get_docstring(tree)]
    assert not silent


def test_nothing_of_one_machine_is_committed() -> None:
    """Neither a link, which leads somewhere on the machine it was made on, nor what git ignores, such as an
    environment.
    """
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--stage"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    assert not [line for line in listed.stdout.splitlines() if not line.startswith("100")]
    ignored = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert not subprocess.run(ignored, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_nothing_of_one_machine_is_in_the_tree() -> None:
    """The paths of recorded programs were replaced by `/home/user/`."""
    places = re.compile(r"/(?:home|Users)/(?!user/)\w+/|/root/")
    if not ROOT.is_relative_to(tempfile.gettempdir()) and ROOT.parent != Path("/"):
        places = re.compile(f"{places.pattern}|{re.escape(str(ROOT.parent))}/")
    wrong = []
    for path in tracked():
        if (
            path.suffix in (".pb", ".gz", ".png", ".v2")
            or ".tfevents." in path.name
            or path == Path(__file__)
        ):
            continue
        wrong += [
            f"{path.relative_to(ROOT)}: {found.group()}"
            for found in places.finditer(path.read_text("utf-8", "replace"))
        ]
    assert not wrong, "\n".join(wrong)
