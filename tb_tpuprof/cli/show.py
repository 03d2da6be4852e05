"""`tpuprof show TOOL RUN_DIR`: a tool's payload as text, JSON (byte for byte the HTTP response), CSV, or
Chrome trace JSON.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tb_tpuprof.cli.parser import Parser
from tb_tpuprof.cli.reading import reading
from tb_tpuprof.encode import encode_csv, encode_json, encode_text
from tb_tpuprof.errors import BadParameter, StorageError
from tb_tpuprof.parallel.executors import EXECUTOR_VARIABLE
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.tools.tool import Tool

_FORMATS = ("text", "json", "csv")


def add_parser(subparsers: argparse._SubParsersAction[Parser]) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser("show", help="print a tool's results for a run")
    parser.help_end = _tools
    parser.add_argument("tool", metavar="TOOL[/QUESTION]", help="a tool or one of its questions; see below")
    parser.add_argument(
        "run_dir",
        metavar="RUN_DIR",
        help="folder with *.xplane.pb or *.trace.json files, or a single such file",
    )
    parser.add_argument("--host", action="append", default=[], metavar="H", help="a host; may be repeated")
    parser.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="a parameter of the tool; may be repeated"
    )
    parser.add_argument(
        "--format",
        default="text",
        metavar="F",
        help=f"{', '.join(_FORMATS)} or a file of the tool, see below; default: %(default)s",
    )
    parser.add_argument(
        "-o",
        "--output",
        default="",
        metavar="FILE",
        help="write to a file; required for formats that are not text",
    )
    parser.add_argument(
        "--table", default="", metavar="T", help="the table for csv; default: the tool's first one"
    )
    where = "how to analyze many hosts: threads, processes, auto (by their number) or dask://HOST:PORT"
    parser.add_argument(
        "--executor",
        default=os.environ.get(EXECUTOR_VARIABLE, "auto"),
        metavar="E",
        help=f"{where}; default: %(default)s",
    )
    parser.add_argument("--no-cache", action="store_true", help="do not use the caches on disk")
    parser.set_defaults(run_command=run_command, reads_traces=True)


def run_command(arguments: argparse.Namespace) -> str:
    """The payload, encoded; if it goes to a file, a note with the file's name."""
    name, _, question = arguments.tool.partition("/")
    tool = get_tool(name)
    params = dict(_pair(text) for text in arguments.param)
    session = Session(arguments.run_dir, cache=not arguments.no_cache, executor=arguments.executor)
    if arguments.format not in _FORMATS:
        files = () if question else tuple(kind.format for kind in tool.files)
        if arguments.format not in files:
            raise BadParameter("--format", arguments.format, ", ".join((*_FORMATS, *files)))
        return _tool_file(session, tool, arguments, params)
    text = _text(session, tool, question, arguments, params)
    if not arguments.output:
        return text
    with _output_errors(arguments.output):
        Path(arguments.output).write_text(text, "utf-8")
    return f"wrote {arguments.output}\n"


def _tools() -> str:
    """The tools with their questions and files."""
    lines = []
    for tool in all_tools():
        questions = ", ".join(one.name for one in tool.questions)
        lines.append(f"  {tool.name}{f': questions {questions}' if questions else ''}")
        lines += [f"      --format {kind.format}: {kind.summary}" for kind in tool.files]
    return "\n".join(("tools:", *lines, ""))


def _text(
    session: Session, tool: Tool, question: str, arguments: argparse.Namespace, params: dict[str, str]
) -> str:
    with reading(session, sys.stderr):
        payload = tool.run(session, arguments.host, params, question)
    if arguments.format == "json":
        return encode_json(payload).decode() + "\n"
    if arguments.format == "csv":
        return encode_csv(payload, arguments.table).decode()
    return encode_text(payload)


def _tool_file(session: Session, tool: Tool, arguments: argparse.Namespace, params: dict[str, str]) -> str:
    """One of the tool's own files: to the named file, or, if it is text, printed."""
    with reading(session, sys.stderr):
        name, parts = tool.file(session, arguments.host, params, arguments.format)
    kind = next(kind for kind in tool.files if kind.format == arguments.format)
    if not arguments.output and not kind.is_text:
        raise BadParameter("--output", "", f"the file to write, such as -o {name}")
    if not arguments.output:
        return b"".join(parts).decode()
    path = Path(arguments.output)
    with _output_errors(arguments.output):
        partial = path.with_name(path.name + ".part")
        try:
            with open(partial, "wb") as file:
                file.writelines(parts)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    return f"wrote {path} ({path.stat().st_size:,} bytes)\n"


@contextmanager
def _output_errors(path: str) -> Iterator[None]:
    """Context manager: turns errors of the operating system into StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"--output: {path} cannot be written: {error.strerror or error}.",
            "Name a file in a folder that exists and that you may write to.",
        ) from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadParameter("--param", text, "name=value")
    return name, value
