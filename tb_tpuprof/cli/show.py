"""`tpuprof show TOOL RUN_DIR`: a tool's payload as text, JSON (byte for byte the HTTP response), CSV, or
Chrome trace JSON.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tb_tpuprof.cli.reading import reading
from tb_tpuprof.encode import encode_csv, encode_json, encode_text
from tb_tpuprof.encode.chrome_trace import trace_parts
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.ingest.storage.files import storage_errors
from tb_tpuprof.parallel.executors import EXECUTOR_VARIABLE
from tb_tpuprof.session import Session
from tb_tpuprof.tools import TOOLS, get_tool
from tb_tpuprof.tools.tool import Tool

_FILES = tuple(dict.fromkeys(kind.format for tool in TOOLS for kind in tool.files))


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser("show", help="print a tool's results for a run")
    parser.add_argument("tool", metavar="TOOL", help=", ".join(tool.name for tool in TOOLS))
    parser.add_argument(
        "run_dir",
        metavar="RUN_DIR",
        help="folder with *.xplane.pb or *.trace.json files, or a single such file",
    )
    parser.add_argument("--host", action="append", default=[], metavar="H", help="a host; may be repeated")
    parser.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="a parameter of the tool; may be repeated"
    )
    words = f"trace: Chrome trace JSON (trace viewer only); {', '.join(_FILES)}: graph viewer only"
    parser.add_argument(
        "--format", choices=("text", "json", "csv", "trace", *_FILES), default="text", help=words
    )
    parser.add_argument(
        "-o",
        "--output",
        default="",
        metavar="FILE",
        help="write to a file; required for trace, which is always gzipped",
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
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> str:
    """The payload, encoded; if it goes to a file, a note with the file's name."""
    tool = get_tool(arguments.tool)
    params = dict(_pair(text) for text in arguments.param)
    session = Session(arguments.run_dir, cache=not arguments.no_cache, executor=arguments.executor)
    if arguments.format == "trace":
        return _trace_file(session, tool, arguments, params)
    if arguments.format in _FILES:
        return _tool_file(session, tool, arguments, params)
    text = _text(session, tool, arguments, params)
    if not arguments.output:
        return text
    with storage_errors(arguments.output):
        Path(arguments.output).write_text(text, "utf-8")
    return f"wrote {arguments.output}\n"


def _text(session: Session, tool: Tool, arguments: argparse.Namespace, params: dict[str, str]) -> str:
    with reading(session, sys.stderr):
        payload = tool.run(session, arguments.host, params)
    if arguments.format == "json":
        return encode_json(payload).decode() + "\n"
    if arguments.format == "csv":
        return encode_csv(payload, arguments.table).decode()
    return encode_text(payload)


def _trace_file(session: Session, tool: Tool, arguments: argparse.Namespace, params: dict[str, str]) -> str:
    """Write Chrome trace JSON part by part; an incomplete file is removed."""
    if tool.name != "trace_viewer":
        raise BadParameter("--format", "trace", "only trace_viewer has the format trace")
    if not arguments.output:
        raise BadParameter("--output", "", "the file to write, such as -o run.trace.json.gz")
    parts = trace_parts(session, arguments.host, params)
    path = Path(arguments.output)
    with storage_errors(arguments.output):
        partial = path.with_name(path.name + ".part")
        try:
            with open(partial, "wb") as file:
                file.writelines(parts)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    return f"wrote {path} ({path.stat().st_size:,} bytes)\n"


def _tool_file(session: Session, tool: Tool, arguments: argparse.Namespace, params: dict[str, str]) -> str:
    """One of the tool's own files, written to the given file, or printed if it is text."""
    kind = next((kind for kind in tool.files if kind.format == arguments.format), None)
    if kind is None:
        raise BadParameter("--format", arguments.format, f"a format of {tool.name}: text, json or csv")
    name, parts = tool.file(session, arguments.host, params, kind.format)
    if not arguments.output and kind.content_type == "application/octet-stream":
        raise BadParameter("--output", "", f"the file to write, such as -o {name}")
    if not arguments.output:
        return b"".join(parts).decode()
    with storage_errors(arguments.output), open(arguments.output, "wb") as file:
        file.writelines(parts)
    return f"wrote {arguments.output}\n"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadParameter("--param", text, "name=value")
    return name, value
