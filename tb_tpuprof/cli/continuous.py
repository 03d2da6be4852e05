"""`tpuprof continuous`: starts and stops continuous profiling of running jobs, and saves snapshots of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tb_tpuprof.capture.options import (
    CONTINUOUS_DEFAULTS,
    CONTINUOUS_OPTIONS,
    HOST_NAMES,
    OPTIONS,
    CaptureOptions,
)
from tb_tpuprof.capture.targets import named_targets
from tb_tpuprof.cli.capture import (
    EXIT_CODES,
    NONE_SAVED,
    SOME_SAVED,
    CaptureRequest,
    add_host_names,
    add_logdir,
    add_recording_arguments,
    add_run_name,
    capture_run,
    options_of,
)
from tb_tpuprof.cli.targets import add_target_arguments, find_targets, where_of
from tb_tpuprof.encode.text import printable

if TYPE_CHECKING:  # it imports gRPC, which other commands should not wait for
    from tb_tpuprof.capture.continuous import Outcome

_ABOUT = (
    "Profile running jobs continuously, and save what was recorded at the moment when something interesting "
    "happened. 'start' begins; each 'snapshot' saves a run with what was recorded since the one before it; "
    "'stop' ends. The profiler servers of JAX 0.10 and TensorFlow 2.21 can do this. A job that is profiled "
    "continuously cannot be captured otherwise."
)
_START = (
    "Begin to profile jobs continuously. TPUs record into a ring, which keeps the latest events. What hosts "
    "and GPUs record stays in the job's memory until the next snapshot: raise the levels only if snapshots "
    "are taken often."
)
_DONE = {"start": "profiling continuously", "stop": "no longer profiled"}
_CALL_CODES = "Exit codes: 0 every target did it, 8 some did, 6 none did, 2 wrong usage."


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand and its actions."""
    parser = subparsers.add_parser(
        "continuous", help="profile running jobs continuously and save snapshots", description=_ABOUT
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    start = actions.add_parser("start", help="begin to profile", description=_START, epilog=_CALL_CODES)
    add_target_arguments(start)
    add_recording_arguments(start, CONTINUOUS_OPTIONS, CONTINUOUS_DEFAULTS)
    start.set_defaults(run_command=_start)
    snapshot = actions.add_parser(
        "snapshot",
        help="save what was recorded since the last snapshot",
        description="Save what jobs have recorded since the last snapshot as a run, one file per target.",
        epilog=EXIT_CODES,
    )
    add_target_arguments(snapshot)
    add_logdir(snapshot)
    add_run_name(snapshot)
    snapshot.add_argument(
        "--timeout_s", type=int, default=CaptureOptions().timeout_s, metavar="S", help=_timeout_help()
    )
    add_host_names(snapshot)
    snapshot.set_defaults(run_command=_snapshot)
    stop = actions.add_parser(
        "stop",
        help="end the profiling",
        description="End the profiling. What no snapshot has saved is lost.",
        epilog=_CALL_CODES,
    )
    add_target_arguments(stop)
    stop.set_defaults(run_command=_stop)


def _timeout_help() -> str:
    option = next(option for option in OPTIONS if option.name == "timeout_s")
    return f"{option.help} Default: {option.default} s."


def _start(arguments: argparse.Namespace) -> int:
    from tb_tpuprof.capture import continuous

    options = options_of(arguments)
    return _reported(continuous.start(find_targets(where_of(arguments)), options), "start")


def _stop(arguments: argparse.Namespace) -> int:
    from tb_tpuprof.capture import continuous

    return _reported(continuous.stop(find_targets(where_of(arguments))), "stop")


def _snapshot(arguments: argparse.Namespace) -> int:
    from tb_tpuprof.capture.configuration import parse_host_names
    from tb_tpuprof.capture.continuous import snapshot_options

    names = parse_host_names(arguments.override_hostnames, f"--{HOST_NAMES}")
    options = replace(snapshot_options(CaptureOptions(timeout_s=arguments.timeout_s)), host_names=names)
    targets = named_targets(find_targets(where_of(arguments)), names, f"--{HOST_NAMES}")
    return capture_run(CaptureRequest(targets, options, arguments.logdir, arguments.run_name))


def _reported(outcomes: Sequence[Outcome], action: str) -> int:
    """Print a line per target; returns the exit code."""
    for outcome in outcomes:
        text = _DONE[action] if outcome.is_ok else f"{outcome.message} {outcome.remedy}".rstrip()
        name = "" if str(outcome.target) in text else f"{outcome.target}: "
        stream = sys.stdout if outcome.is_ok else sys.stderr
        stream.write(printable(f"{name}{text}") + "\n")
    n_ok = sum(outcome.is_ok for outcome in outcomes)
    return 0 if n_ok == len(outcomes) else SOME_SAVED if n_ok else NONE_SAVED
