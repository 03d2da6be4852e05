"""`tpuprof schema [TOOL[/QUESTION]]`: the JSON Schema of an answer, or of all of them."""

from __future__ import annotations

import argparse
import json

from tb_tpuprof.encode.schema import payload_schema
from tb_tpuprof.tools import all_tools, get_tool


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser("schema", help="print the JSON Schema of what tools answer")
    parser.add_argument(
        "tool", metavar="TOOL[/QUESTION]", nargs="?", default="", help="of one tool or question; default: all"
    )
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> str:
    """The schema, or an object of all schemas by TOOL and TOOL/QUESTION."""
    if arguments.tool:
        name, _, question = arguments.tool.partition("/")
        tool = get_tool(name)
        found: object = payload_schema(tool, tool.question(question))
    else:
        found = {
            f"{tool.name}/{question.name}".rstrip("/"): payload_schema(tool, question)
            for tool in all_tools()
            for question in (tool.page, *tool.questions)
        }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
