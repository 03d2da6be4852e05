"""The command `tpuprof`: the same numbers as in the browser. One module per subcommand, imported when it is
called.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from tb_tpuprof import __version__
from tb_tpuprof.cli.failing import exit_code_of
from tb_tpuprof.cli.parser import Parser
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.tools.plain_decoder import plain_decoder_diagnostics

SLOW = (
    " (without the compiled decoder: same numbers, but slower; install a C compiler, then reinstall "
    "tb-tpuprof)"
)
COMMANDS = ("runs", "tools", "why", "query", "show", "schema", "capture", "continuous", "monitor")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code: 0 done, 2 wrong usage, 3 a damaged trace, 4 not found, 5
    nothing to show.

    Captures: 6 nothing was saved, 7 not allowed, 8 some targets failed. 130: Ctrl-C.
    """
    given = sys.argv[1:] if argv is None else argv
    parser = Parser(prog="tpuprof", description="Capture and analyze profiles of machine-learning jobs.")
    parser.add_argument(
        "--version", action="version", version=f"tpuprof {__version__}{'' if IS_COMPILED else SLOW}"
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _needed(given):
        import_module(f"{__name__}.{command}").add_parser(subparsers)
    arguments = parser.parse_args(given)
    return exit_code_of("tpuprof", lambda: _run(arguments))


def _needed(given: Sequence[str]) -> tuple[str, ...]:
    """The command that is called, or all, for the help and for errors."""
    first = given[0] if given else ""
    return (first,) if first in COMMANDS else () if first == "--version" else COMMANDS


def _run(arguments: argparse.Namespace) -> int:
    """A command either prints by itself and returns its exit code, or returns the text to print. Those that
    read traces warn first where reading is slow.
    """
    if getattr(arguments, "reads_traces", False):
        for warning in plain_decoder_diagnostics():
            sys.stderr.write(f"tpuprof: {warning.message} {warning.remedy}\n")
    outcome: int | str = arguments.run_command(arguments)
    if isinstance(outcome, str):
        sys.stdout.write(outcome)
        return 0
    return outcome
