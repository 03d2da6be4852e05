"""`tpuprof capture`: saves profiles of running jobs as a run below a logdir; progress on stderr, the run's
folder on stdout.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_tpuprof.capture.options import OPTIONS, CaptureOptions
from tb_tpuprof.capture.targets import Target
from tb_tpuprof.cli.progress import Progress
from tb_tpuprof.cli.targets import add_target_arguments, find_targets, where_of
from tb_tpuprof.encode.text import printable
from tb_tpuprof.ingest.storage.writing import new_run
from tb_tpuprof.units import format_bytes

if TYPE_CHECKING:  # it imports gRPC, which other commands should not wait for
    from tb_tpuprof.capture.job import TargetProgress

NONE_SAVED, SOME_SAVED = 6, 8
EXIT_CODES = (
    "Exit codes: 0 every target was saved, 8 some were, 6 none was (or a TPU's name could not be resolved), "
    "2 wrong usage, 4 the logdir cannot be written, 130 Ctrl-C."
)


@dataclass(frozen=True)
class CaptureRequest:
    """What to capture, and where to save it. `workers`: the hosts that the first target profiles instead of
    itself.
    """

    targets: tuple[Target, ...]
    options: CaptureOptions
    logdir: str
    run_name: str = ""
    workers: tuple[str, ...] = ()


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    text = (
        "Profile running jobs and save the profiles as a run, which TensorBoard's Profile tab and 'tpuprof "
        "show' can open. The jobs must run a profiler server: jax.profiler.start_server(9012), "
        "tf.profiler.experimental.server.start(6009), TensorFlow Serving's port 8500, a Cloud TPU. All "
        "targets start at the same moment and become one run with one file per target; if one fails, the "
        "others are still saved."
    )
    parser = subparsers.add_parser(
        "capture", help="profile running jobs and save the run", description=text, epilog=EXIT_CODES
    )
    add_target_arguments(parser)
    parser.add_argument(
        "--logdir",
        required=True,
        metavar="DIR",
        help="where to save: TensorBoard's logdir, a folder or a URL such as gs://bucket/logs",
    )
    parser.add_argument("--run_name", default="", metavar="NAME", help="name of the run (default: the time)")
    recording = parser.add_argument_group("what to record")
    for option in OPTIONS:
        levels = "; ".join(f"{value}: {title}" for value, title, _ in option.choices)
        unit = f" {option.unit}" if option.unit else ""
        text = f"{option.help}{' ' + levels + '.' if levels else ''} Default: {option.default}{unit}."
        recording.add_argument(
            f"--{option.name}",
            type=int,
            default=option.default,
            metavar=option.unit.upper() or "N",
            help=text.replace("%", "%%"),
        )
    recording.add_argument(
        "--include_dataset_ops",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to record tf.data's operations.",
    )
    parser.add_argument(
        "--workers_list",
        default="",
        metavar="HOST,…",
        help="hosts for the first target to profile; they write into the logdir themselves",
    )
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Capture; returns the exit code."""
    given = {option.name: getattr(arguments, option.name) for option in OPTIONS}
    options = CaptureOptions(**given, include_dataset_ops=arguments.include_dataset_ops)
    targets = find_targets(where_of(arguments))
    return capture_run(
        CaptureRequest(targets, options, arguments.logdir, arguments.run_name, split(arguments.workers_list))
    )


def split(text: str) -> tuple[str, ...]:
    """The parts of a list separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def capture_run(request: CaptureRequest) -> int:
    """Capture all targets into a new run with progress on stderr, then print a report. Returns the
    exit code.
    """
    from tb_tpuprof.capture.job import capture

    folder = new_run(request.logdir, request.run_name)
    with Progress(sys.stderr, [str(target) for target in request.targets]) as progress:
        results = capture(request.targets, request.options, folder, progress.show, workers=request.workers)
    sys.stdout.write(printable(report(results, folder.path, folder.logdir)))
    n_saved = sum(target.state == "saved" for target in results)
    return 0 if n_saved == len(results) else SOME_SAVED if n_saved else NONE_SAVED


def report(results: Sequence[TargetProgress], path: str, logdir: str) -> str:
    """What was saved, what failed and why, and the commands that open the run."""
    saved = [target for target in results if target.state == "saved"]
    failed = [target for target in results if target.state != "saved"]
    lines = []
    if saved:
        of = f" of {len(results)}" if failed else ""
        size = format_bytes(sum(target.size_bytes or 0 for target in saved))
        lines.append(f"Saved {len(saved)}{of} profile{'s' if len(results) != 1 else ''}, {size}: {path}")
    else:
        lines.append("Nothing was saved.")
    lines += [f"  {_why(target)}" for target in failed]
    if saved:
        lines.append(f"Open it:  tpuprof show overview_page {shlex.quote(path)}")
        lines.append(f"     or:  tensorboard --logdir {shlex.quote(logdir)}")
    return "\n".join(lines) + "\n"


def _why(target: TargetProgress) -> str:
    """Why a target failed, with its name."""
    name = "" if target.target in target.message else f"{target.target}: "
    return f"{name}{target.message} {target.remedy}".rstrip()
