"""`tpuprof runs LOGDIR`: the profile runs below a folder."""

from __future__ import annotations

import argparse
import json
import os

from tb_tpuprof.encode.text import printable
from tb_tpuprof.errors import StorageError
from tb_tpuprof.ingest.storage.files import is_url
from tb_tpuprof.ingest.storage.runs import find_runs, open_run
from tb_tpuprof.units import format_bytes


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser("runs", help="list the profile runs below a logdir, newest first")
    parser.add_argument("logdir", metavar="LOGDIR", help="folder, or fsspec URL such as gs://bucket/logs")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> str:
    """The list as text or JSON."""
    if not is_url(arguments.logdir) and not os.path.isdir(arguments.logdir):
        raise StorageError(
            f"{printable(arguments.logdir)} is not a folder.",
            "Name TensorBoard's logdir: the folder above plugins/profile.",
        )
    runs = find_runs(arguments.logdir)
    if arguments.format == "json":
        rows = [
            {
                "run": run.name,
                "path": run.path,
                "captured_at": run.captured_at,
                "hosts": [file.host for file in run.files],
                "size_bytes": sum(file.size_bytes for file in run.files),
                "state": run.state,
                "message": run.message,
            }
            for run in runs
        ]
        return json.dumps({"runs": rows}, indent=1, ensure_ascii=False) + "\n"
    if not runs and os.path.isdir(arguments.logdir) and open_run(arguments.logdir).files:
        return f"{arguments.logdir} is itself a run: tpuprof show overview_page {arguments.logdir}\n"
    if not runs:
        return f"No profile runs below {arguments.logdir}. Runs are in folders named plugins/profile/<run>.\n"
    lines = []
    for run in runs:
        size = format_bytes(sum(file.size_bytes for file in run.files))
        summary = (
            f"{len(run.files)} host{'s' if len(run.files) != 1 else ''}, {size}"
            if run.state == "ok"
            else f"{run.state}: {run.message}"
        )
        lines.append(f"{run.name}  {run.captured_at}  {summary}\n    {run.path}")
    return printable("\n".join(lines) + "\n")
