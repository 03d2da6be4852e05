"""`tpuprof tools RUN_DIR`: which tools have something to show for a run, and why the others do not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tb_tpuprof.cli.reading import reading
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools
from tb_tpuprof.tools.base import Param


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser("tools", help="list the tools and what they need")
    parser.add_argument(
        "run_dir",
        metavar="RUN_DIR",
        help="folder with *.xplane.pb or *.trace.json files, or a single such file",
    )
    parser.set_defaults(run_command=run_command, reads_traces=True)


def run_command(arguments: argparse.Namespace) -> str:
    """The list as text."""
    session = Session(arguments.run_dir)
    with reading(session, sys.stderr):
        availabilities = [tool.availability(session) if session.hosts else None for tool in all_tools()]
    lines, width = [], max(len(tool.name) for tool in all_tools()) + 2
    for tool, availability in zip(all_tools(), availabilities, strict=True):
        reason = availability.reason if availability is not None else session.info.message
        lines.append(f"{tool.name:<{width}}{tool.summary}")
        if reason:
            lines.append(
                f"{'':<{width}}nothing to show: {reason} "
                f"{availability.remedy if availability else ''}".rstrip()
            )
        lines += _param_lines(tool.params, width)
        for question in tool.questions:
            lines.append(f"{'':<{width}}{tool.name}/{question.name}  {question.summary}")
            lines += _param_lines(question.params, width + 2)
    lines.append(f"hosts: {', '.join(session.hosts) or 'none'}")
    return "\n".join(lines) + "\n"


def _param_lines(params: Sequence[Param], indent: int) -> list[str]:
    """A line for each parameter; `…` where there is no default."""
    values = [(param, "…" if param.default is None else param.default) for param in params]
    return [f"{'':<{indent}}--param {param.name}={value}  {param.help}" for param, value in values]
