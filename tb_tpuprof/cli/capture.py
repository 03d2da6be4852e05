"""`tpuprof capture`: saves profiles of running jobs as a run below a logdir; progress on stderr, the run's
folder on stdout.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tb_tpuprof.capture.configuration import parse_settings
from tb_tpuprof.capture.options import (
    FILTER_MASK,
    HOST_NAMES,
    OPTIONS,
    TEXT_OPTIONS,
    CaptureOptions,
    Option,
    capture_options,
)
from tb_tpuprof.capture.targets import Target, named_targets
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
    add_logdir(parser)
    add_run_name(parser)
    add_host_names(parser)
    add_recording_arguments(parser, OPTIONS, {})
    parser.add_argument(
        "--workers_list",
        default="",
        metavar="HOST,…",
        help="hosts for the first target to profile; they write into the logdir themselves",
    )
    parser.set_defaults(run_command=run_command)


def add_logdir(parser: argparse.ArgumentParser) -> None:
    """Declare where to save."""
    parser.add_argument(
        "--logdir",
        required=True,
        metavar="DIR",
        help="where to save: TensorBoard's logdir, a folder or a URL such as gs://bucket/logs",
    )


def add_run_name(parser: argparse.ArgumentParser) -> None:
    """Declare the name of the run, which is also the session id that servers get."""
    parser.add_argument(
        "--run_name",
        "--session_id",
        default="",
        metavar="NAME",
        help="name of the run, and the session id that the servers get (default: the time)",
    )


def add_host_names(parser: argparse.ArgumentParser) -> None:
    """Declare the names of the hosts."""
    option = next(option for option in TEXT_OPTIONS if option.name == HOST_NAMES)
    parser.add_argument(f"--{HOST_NAMES}", default="", metavar="NAME,…", help=option.help.replace("%", "%%"))


def add_recording_arguments(
    parser: argparse.ArgumentParser, options: Sequence[Option], defaults: Mapping[str, int]
) -> None:
    """Declare what to record. `defaults` are those that differ from the options' own."""
    recording = parser.add_argument_group("what to record")
    for option in options:
        levels = "; ".join(f"{value}: {title}" for value, title, _ in option.choices)
        unit = f" {option.unit}" if option.unit else ""
        default = defaults.get(option.name, option.default)
        text = f"{option.help}{' ' + levels + '.' if levels else ''} Default: {default}{unit}."
        recording.add_argument(
            f"--{option.name}",
            type=int,
            default=default,
            metavar=option.unit.upper() or "N",
            help=text.replace("%", "%%"),
        )
    recording.add_argument(
        "--include_dataset_ops",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to record tf.data's operations.",
    )
    recording.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting that only some devices know, such as tpu_trace_mode=TRACE_COMPUTE; repeatable. true "
        "and false are booleans, whole numbers are sent as numbers, everything else as text.",
    )
    mask = next(option for option in TEXT_OPTIONS if option.name == FILTER_MASK)
    recording.add_argument(f"--{FILTER_MASK}", default="", metavar="MASK", help=mask.help.replace("%", "%%"))


def options_of(arguments: argparse.Namespace) -> CaptureOptions:
    """The options of parsed arguments. Raises BadParameter."""
    numbers = {option.name: getattr(arguments, option.name) for option in OPTIONS if option.name in arguments}
    texts = {name: getattr(arguments, name, "") for name in (FILTER_MASK, HOST_NAMES)}
    return replace(
        capture_options({**numbers, **texts}),
        include_dataset_ops=arguments.include_dataset_ops,
        configuration=parse_settings(arguments.option, "--option"),
    )


def run_command(arguments: argparse.Namespace) -> int:
    """Capture; returns the exit code."""
    options = options_of(arguments)
    targets = named_targets(find_targets(where_of(arguments)), options.host_names, f"--{HOST_NAMES}")
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
