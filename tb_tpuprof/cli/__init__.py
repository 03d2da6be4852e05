"""The command `tpuprof`: the same numbers without a browser. One module a subcommand, in a literal list."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tb_tpuprof import __version__
from tb_tpuprof.cli import runs, show, tools
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.native import IS_COMPILED

SLOW = " (without the compiled decoder: the same numbers, but slower; install a C compiler, then tb-tpuprof again)"
COMMANDS = (runs, tools, show)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code: 0 done, 2 wrong usage, 3 a damaged trace, 4 not found, 5 nothing to show."""
    parser = argparse.ArgumentParser(prog="tpuprof", description="Look into captured profiles of machine-learning jobs.")
    parser.add_argument("--version", action="version", version=f"tpuprof {__version__}{'' if IS_COMPILED else SLOW}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(subparsers)
    arguments = parser.parse_args(argv)
    try:
        sys.stdout.write(arguments.run_command(arguments))
        sys.stdout.flush()
        return 0
    except ProfilerError as error:
        sys.stderr.write(f"tpuprof: {error.message}\n{'  ' + error.remedy + chr(10) if error.remedy else ''}")
        return error.exit_code
    except MemoryError:
        sys.stderr.write("tpuprof: this run is too large for the machine's memory.\n")
        return 3
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
