"""Writes what follows from the tools' declarations: the TypeScript accessors, the field lists of the docs,
and the list of events in the glossary.

`make golden` runs it; tests/test_generated.py compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from tb_tpuprof.analysis.events.glossary import Entry, entries
from tb_tpuprof.tools import all_tools
from tb_tpuprof.tools.base import Param, Question
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec
from tb_tpuprof.tools.tool import Tool

ROOT = Path(__file__).resolve().parent.parent
TYPESCRIPT = ROOT / "frontend" / "src" / "api" / "tables"
VIEWS = ROOT / "frontend" / "src" / "tools"
API_DOCUMENT = ROOT / "docs" / "http_api.md"
FIELDS_BEGIN, FIELDS_END = "<!-- fields: written by `make golden` -->\n", "<!-- end of fields -->\n"
GLOSSARY_DOCUMENT = ROOT / "docs" / "glossary.md"
EVENTS_BEGIN, EVENTS_END = "<!-- events: written by `make golden` -->\n", "<!-- end of events -->\n"
_TS_HEAD = """// Written by `make golden` from the tools' declarations in tb_tpuprof/tools. Not to be edited.
import {{ {names} }} from '../declared';
"""


def typescript() -> dict[Path, str]:
    """A module per tool with a view of its own, by its path: by question the declared tables and scalars."""
    with_view = [tool for tool in all_tools() if (VIEWS / tool.name).is_dir()]
    return {TYPESCRIPT / f"{tool.name}.ts": _typescript_tool(tool) for tool in with_view}


def _typescript_tool(tool: Tool) -> str:
    questions = (tool.page, *tool.questions)
    used = {"scalar": any(one.scalars for one in questions), "table": any(one.tables for one in questions)}
    head = _TS_HEAD.format(names=", ".join(name for name, is_used in used.items() if is_used))
    body = "".join(map(_typescript_question, questions))
    return f"{head}\nexport const {tool.name.upper()} = {{\n{body}}};\n"


def _typescript_question(question: Question) -> str:
    tables = "".join(_typescript_table(spec) for spec in question.tables)
    scalars = "".join(
        f"    {spec.name}: scalar({_quoted(spec.name)}, {_lower(spec.is_optional)}),\n"
        for spec in question.scalars
    )
    return (
        f"  {question.name or 'page'}: {{\n"
        f"    tables: {{\n{_indented(tables, 2)}    }},\n"
        f"    scalars: {{\n{_indented(scalars, 2)}    }},\n  }},\n"
    )


def _typescript_table(spec: TableSpec) -> str:
    required, optional = (
        "".join(
            f"        {column.name}: {_quoted(column.kind)},\n"
            for column in spec.columns
            if column.is_optional == is_optional
        )
        for is_optional in (False, True)
    )
    return (
        f"    {spec.name}: table(\n      {_quoted(spec.name)},\n      {_braced(required)},\n"
        f"      {_braced(optional)},\n    ),\n"
    )


def _braced(lines: str) -> str:
    return f"{{\n{lines}      }}" if lines else "{}"


def _indented(text: str, spaces: int) -> str:
    return "".join(f"{' ' * spaces}{line}" for line in text.splitlines(keepends=True))


def _quoted(text: str) -> str:
    return f"'{text}'"


def _lower(value: bool) -> str:
    return "true" if value else "false"


def fields() -> str:
    """The lists of questions, parameters, scalars and columns for docs/http_api.md."""
    return "".join(
        line
        for tool in all_tools()
        for line in (*_tool_lines(tool.name, (tool.page, *tool.questions)), *_file_lines(tool))
    )


def _tool_lines(name: str, questions: Sequence[Question]) -> Iterator[str]:
    for question in questions:
        path = f"{name}/{question.name}".rstrip("/")
        yield f"### `data/{path}`\n\n{question.summary}.\n\n"
        yield from _section("Parameters", [_param_line(param) for param in question.params])
        yield from _section("Scalars", [_scalar_line(spec) for spec in question.scalars])
        for spec in question.tables:
            yield f"Table `{spec.name}`{_if_any(spec.is_optional)}{_sentence(spec.description)}\n\n"
            yield from (f"{_column_line(column)}\n" for column in spec.columns)
            yield "\n"


def _file_lines(tool: Tool) -> Iterator[str]:
    for file in tool.files:
        yield f"### `data/{tool.name}?format={file.format}`\n\n{file.summary}: `{file.content_type}`.\n\n"
        yield from _section("Parameters", [_param_line(param) for param in file.params])


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{title}\n\n"
        yield from (f"{line}\n" for line in lines)
        yield "\n"


def _param_line(param: Param) -> str:
    kind = " or ".join(f"`{choice}`" for choice in param.choices) or param.kind
    default = (
        "required"
        if param.is_required
        else ""
        if param.default is None
        else f"default `{json.dumps(param.default)}`"
    )
    return f"- `{param.name}` ({', '.join(filter(None, (kind, _bounds(param), default)))}): {param.help}"


def _bounds(param: Param) -> str:
    """`1 to 8000`, `at least 1`, or empty for any number from 0 up."""
    if param.kind not in ("int", "float"):
        return ""
    if param.maximum >= 2**53:
        return f"at least {param.minimum:g}" if param.minimum else ""
    return f"{param.minimum:g} to {param.maximum:.15g}"


def _scalar_line(spec: ScalarSpec) -> str:
    return f"- `{spec.name}`{_unit(spec.unit)}: {spec.title}{_if_any(spec.is_optional)}{_definition(spec)}"


def _column_line(spec: ColumnSpec) -> str:
    kind = "" if spec.kind == "number" else f" ({spec.kind})"
    return f"- `{spec.name}`{_unit(spec.unit) or kind}: {spec.title}{_if_any(spec.is_optional)}{_definition(spec)}"


def _definition(spec: ScalarSpec | ColumnSpec) -> str:
    """The sentence, the formula, and the meaning of null."""
    formula = f" = `{spec.formula}`" if spec.formula else ""
    unknown = f". null: {spec.unknown}" if spec.unknown else ""
    return f"{_sentence(spec.description)}{formula}{unknown}"


def _unit(unit: str) -> str:
    return f" ({unit})" if unit else ""


def _if_any(is_optional: bool) -> str:
    return ", where the run has it" if is_optional else ""


def _sentence(description: str) -> str:
    return f". {description}" if description else ""


def document() -> str:
    """docs/http_api.md with its generated part as it follows from the declarations."""
    before, _, rest = API_DOCUMENT.read_text("utf-8").partition(FIELDS_BEGIN)
    _, _, after = rest.partition(FIELDS_END)
    return f"{before}{FIELDS_BEGIN}\n{fields()}{FIELDS_END}{after}"


def glossary() -> str:
    """docs/glossary.md with the list of events as it follows from the glossary's data."""
    before, _, rest = GLOSSARY_DOCUMENT.read_text("utf-8").partition(EVENTS_BEGIN)
    _, _, after = rest.partition(EVENTS_END)
    events = sorted(entries(), key=lambda entry: entry.term.casefold())
    return f"{before}{EVENTS_BEGIN}\n{''.join(map(_event_line, events))}\n{EVENTS_END}{after}"


def _event_line(entry: Entry) -> str:
    source = f"[Source]({entry.source})" if entry.source.startswith("https://") else f"Source: {entry.source}"
    where = f" Any other event on a track of {', '.join(entry.tracks)}." if entry.tracks else ""
    example = "" if entry.term == entry.examples[0] or entry.tracks else f" (`{entry.examples[0]}`)"
    return f"* **{entry.term}**{example}: {entry.text}{where} {source}.\n"


def main() -> None:
    """Write all files."""
    GLOSSARY_DOCUMENT.write_text(glossary(), "utf-8")
    TYPESCRIPT.mkdir(exist_ok=True)
    for path, text in typescript().items():
        path.write_text(text, "utf-8")
    API_DOCUMENT.write_text(document(), "utf-8")


if __name__ == "__main__":
    main()
