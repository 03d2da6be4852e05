"""Lists that must agree: tools in Python, views in the frontend, documents, goldens; and the frontend's types
with the server's answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from werkzeug.test import Client

from tb_tpuprof import tools
from tb_tpuprof.analysis.query.grammar import FIELDS
from tb_tpuprof.encode import encode_json
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools
from tb_tpuprof.tools.payload import Column, Diagnostic, NextStep, Payload, Scalar, Table, Unit, Verdict
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec
from tests.golden_files import GOLDEN, demo_runs
from tests.synthetic import write_run
from tests.synthetic_unlike import gpu_run, kernels_run, memory_run, tpu_run

ROOT = Path(__file__).resolve().parent.parent
NAMES = {tool.name for tool in all_tools()}


VIEWS = ROOT / "frontend" / "src" / "tools"


def missing(paths: Iterable[Path]) -> list[str]:
    """What to write."""
    return [f"write {path.relative_to(ROOT)}" for path in paths if not path.exists()]


def test_every_view_is_of_a_tool() -> None:
    """A tool without a folder has the generic page."""
    source = (ROOT / "frontend" / "src" / "app.tsx").read_text("utf-8")
    block = re.search(r"TOOL_VIEWS[^=]*= \{(.*?)\n\};", source, re.DOTALL)
    assert block
    registered = set(re.findall(r"^  (\w+): ", block[1], re.MULTILINE))
    folders = {path.name for path in VIEWS.iterdir() if path.is_dir()}
    assert not registered - NAMES, "TOOL_VIEWS in app.tsx names what is no tool"
    assert not folders - registered, "add these folders to TOOL_VIEWS in app.tsx, or remove them"


def test_every_tool_has_its_own_module_document_and_test() -> None:
    assert tuple(tool.name for tool in all_tools()) == tools.NAMES, "a tool has the name of its module"
    for tool in all_tools():
        module = tool.page.view.__module__.removeprefix("tb_tpuprof.tools.").split(".")[0]
        assert module == tool.name, (
            f"define the view of {tool.name} in tools/{tool.name}.py or a folder of that name"
        )
    wanted = [ROOT / "docs" / "tools" / f"{name}.md" for name in NAMES]
    tests = ROOT / "tests" / "tools"
    wanted += [(tests / name if (tests / name).is_dir() else tests) / f"test_{name}.py" for name in NAMES]
    wanted += [ROOT / "tests" / "browser" / f"test_{name}.py" for name in NAMES if (VIEWS / name).is_dir()]
    assert not missing(wanted)
    documents = {path.stem for path in (ROOT / "docs" / "tools").glob("*.md")} - {"README"}
    assert not documents - NAMES, "docs/tools describes what is no tool"


def test_every_tool_has_a_golden_of_every_demo_run() -> None:
    wanted = {Path(log, f"{name}.json") for log in demo_runs() for name in NAMES}
    there = {path.relative_to(GOLDEN) for path in GOLDEN.glob("*/*.json")}
    assert wanted == there, "run `make golden`, and delete the goldens of tools that are gone"


def test_every_tool_declares_what_it_answers() -> None:
    for tool in all_tools():
        for question in (tool.page, *tool.questions):
            assert question.tables or question.scalars, f"declare the tables of {tool.name}/{question.name}"
            names = [spec.name for spec in question.tables]
            assert len(names) == len(set(names)), f"{tool.name}/{question.name} declares a table twice"


def test_texts_are_there() -> None:
    for tool in all_tools():
        assert tool.title
        assert tool.group
        assert tool.summary
        assert all(param.title and param.help for param in tool.params)


def interfaces(module: str = "types.ts") -> dict[str, set[str]]:
    """Field names of each exported interface of a module of `api/`, inherited ones too."""
    source = (ROOT / "frontend" / "src" / "api" / module).read_text("utf-8")
    found: dict[str, set[str]] = {}
    for name, base, body in re.findall(
        r"interface (\w+)(?: extends (\w+))? \{\n(.*?)\n\}", source, re.DOTALL
    ):
        found[name] = set(re.findall(r"^  (\w+)\??:", body, re.MULTILINE)) | found.get(base, set())
    return found


def test_units_are_the_frontend_s() -> None:
    source = (ROOT / "frontend" / "src" / "api" / "types.ts").read_text("utf-8")
    declared = re.search(r"type Unit =\s(.*?);", source, re.DOTALL)
    assert declared
    assert set(re.findall(r"'(\w*)'", declared[1])) == set(get_args(Unit))


def answer_of(payload: Payload) -> dict[str, Any]:
    """The payload as a client reads it."""
    answer: dict[str, Any] = json.loads(encode_json(payload))
    return answer


def test_payload_has_the_fields_of_the_frontend_s_types() -> None:
    columns = (
        Column("name", "Name", np.array([0]), strings=["a"]),
        Column("size_bytes", "Size", np.array([1.0]), "bytes"),
        Column("is_eager", "Eager", np.array([True])),
    )
    verdict = Verdict("good", "Fine.", next=(NextStep("Look.", "trace_viewer"),))
    tables, scalars = {"t": Table("T", columns, chart="donut")}, {"n": Scalar(1, "count", "N")}
    answer = answer_of(Payload("t", "r", ("h",), tables, scalars, verdict, (Diagnostic("info", "Hm."),)))
    types = interfaces()
    assert set(answer) == types["Payload"]
    assert set(answer["verdict"]) == types["Verdict"]
    assert set(answer["verdict"]["next"][0]) == types["NextStep"]
    assert set(answer["scalars"]["n"]) == types["Scalar"]
    assert set(answer["tables"]["t"]) == types["Table"]
    assert set(answer["diagnostics"][0]) == types["Diagnostic"]
    kinds = {"text": "TextColumn", "number": "NumberColumn", "bool": "BoolColumn"}
    for column in answer["tables"]["t"]["columns"]:
        assert set(column) == types[kinds[column["kind"]]]


@pytest.fixture
def routes() -> dict[str, Client]:
    served = Routes(Logdirs.of(str(ROOT / "demo_logs"), ""), "profile")
    return {route: Client(app) for route, app in served.apps().items()}


def test_answers_of_the_server_have_the_fields_of_the_frontend_s_types(routes: dict[str, Client]) -> None:
    types = interfaces()
    runs = routes["/runs"].get("/runs").json
    assert runs
    assert set(runs) == types["RunsAnswer"]
    assert set(runs["runs"][0]) == types["RunInfo"]
    tools = routes["/tools"].get("/tools", query_string={"run": runs["runs"][0]["run"]}).json
    assert tools
    assert set(tools) == types["ToolsAnswer"]
    assert set(tools["hosts"][0]) == types["HostInfo"]
    assert all(set(tool) == types["ToolInfo"] for tool in tools["tools"])
    assert all(set(param) == types["ParamInfo"] for tool in tools["tools"] for param in tool["params"])
    refused = routes["/tools"].get("/tools", query_string={"run": "../../etc"})
    assert refused.status_code == 404
    assert refused.json
    assert set(refused.json) == types["ErrorAnswer"]
    assert set(refused.json["error"]) == {"kind", "message", "remedy"}


def declared_numbers() -> Iterator[tuple[str, ColumnSpec | ScalarSpec]]:
    """Every scalar and column of every page and question, by its path."""
    for tool in all_tools():
        for question in (tool.page, *tool.questions):
            path = f"{tool.name}/{question.name}".rstrip("/")
            yield from ((f"{path}: {spec.name}", spec) for spec in question.scalars)
            for table in question.tables:
                yield from ((f"{path}: {table.name}.{column.name}", column) for column in table.columns)


def test_every_number_and_column_has_a_sentence() -> None:
    lacking = [path for path, spec in declared_numbers() if len(spec.description) < len(spec.name) // 3 + 3]
    assert not lacking, "add a description: what the number is, in a sentence"


def test_sentences_say_more_than_the_title() -> None:
    def plain(text: str) -> str:
        return re.sub(r"\W", "", text).casefold()

    repeated = [path for path, spec in declared_numbers() if plain(spec.description) == plain(spec.title)]
    assert not repeated


def test_sentences_and_reasons_fit_into_tooltips() -> None:
    """They start with a capital, reasons with a small letter: they follow `unknown:`. Neither ends with a
    period, which the page adds.
    """
    for path, spec in declared_numbers():
        assert not spec.description.endswith("."), path
        assert not spec.unknown.endswith("."), path
        assert spec.description[:1].upper() == spec.description[:1], path
        if spec.unknown:
            first = spec.unknown.split()[0]
            assert first.islower() or any(letter.isupper() for letter in first[1:]), f"{path}: {spec.unknown}"
        assert len(spec.description) <= 220, path


def test_every_table_of_a_page_has_a_sentence_for_people() -> None:
    for tool in all_tools():
        for table in tool.tables:
            sentence = table.sentence or table.description
            assert sentence, f"{tool.name}: say what the table {table.name} shows"
            assert "`" not in sentence, (
                f"{tool.name}: {table.name} needs a `sentence` without names of fields"
            )
            assert "null" not in sentence, f"{tool.name}: {table.name} needs a `sentence` without null"


@pytest.mark.parametrize("log", sorted(demo_runs()))
def test_unknown_numbers_say_why(log: str) -> None:
    """Where a page shows "—", the answer has the reason."""
    session = Session(str(demo_runs()[log]), cache=False)
    for tool in all_tools():
        if tool.availability(session):
            check_reasons(tool.run(session, None, {}))


@pytest.mark.parametrize("drawn", [tpu_run, gpu_run, kernels_run, memory_run], ids=lambda run: run.__name__)
def test_unknown_numbers_of_devices_say_why(drawn: Callable[[], dict[str, bytes]], tmp_path: Path) -> None:
    write_run(tmp_path / "run", drawn())
    session = Session(str(tmp_path / "run"), cache=False)
    for tool in all_tools():
        if tool.availability(session):
            check_reasons(tool.run(session, None, {}))


def check_reasons(payload: Payload) -> None:
    """Each unknown scalar has a note, each column with unknown cells the reason for them."""
    for name, scalar in payload.scalars.items():
        if scalar.value is None or scalar.value != scalar.value:
            assert scalar.note, f"{payload.tool}: {name} is unknown without a reason"
    for table_name, table in payload.tables.items():
        for column in table.columns:
            values = np.asarray(column.values)
            is_unknown = values < 0 if column.strings is not None else values != values
            if is_unknown.any():
                assert column.unknown, f"{payload.tool}: {table_name}.{column.name} lacks `unknown`"


def test_the_query_line_colors_the_fields_of_the_language() -> None:
    source = (ROOT / "frontend/src/tools/trace_viewer/query/tokens.ts").read_text("utf-8")
    match = re.search(r"const FIELDS = '([a-z|]+)';", source)
    assert match
    assert match[1].split("|") == [field.name for field in FIELDS]
