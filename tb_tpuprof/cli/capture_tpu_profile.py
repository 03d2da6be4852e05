"""The command `capture_tpu_profile`: the old Cloud TPU Profiler's flags on top of our capture and monitoring.
Scripts written for it keep working.

Differences: profiles are returned over the connection and written here, not by the TPU; every worker of a TPU
is captured unless `--workers_list` names some; exit codes report what failed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial

from tb_tpuprof import __version__
from tb_tpuprof.cli.absl_flags import Flag, UsageError, Value, flags_help, parse_flags
from tb_tpuprof.cli.capture import EXIT_CODES, CaptureRequest, capture_run, split
from tb_tpuprof.cli.failing import exit_code_of
from tb_tpuprof.cli.monitor import old_lines, watch
from tb_tpuprof.cli.targets import Where, find_targets

NAME = "capture_tpu_profile"
TRACING_MS, MONITORING_MS = 2000, 1000
FLAGS = (
    Flag("tpu", "", "Name of the Cloud TPU, or several separated by commas.", ("tpu_name",)),
    Flag("tpu_zone", "", "Zone of the Cloud TPU; if empty, the zone of this machine, on Google Cloud."),
    Flag("gcp_project", "", "Project of the Cloud TPU; if empty, the project of the credentials."),
    Flag(
        "service_addr",
        "",
        "Address of a profiler server instead of a name, such as 10.0.0.2:8466, or several separated by "
        "commas.",
    ),
    Flag(
        "workers_list",
        "",
        "Workers for the server to profile instead of itself; they write into the logdir themselves.",
    ),
    Flag(
        "logdir",
        "",
        "TensorBoard's logdir: a folder or a URL such as gs://bucket/logs. Not needed for monitoring.",
    ),
    Flag(
        "duration_ms",
        0,
        f"How long to profile, or the time each monitoring query covers; 0: {TRACING_MS} ms, or "
        f"{MONITORING_MS} ms.",
    ),
    Flag("num_tracing_attempts", 3, "How often to try if no events are collected."),
    Flag("include_dataset_ops", True, "Whether to record tf.data's operations."),
    Flag(
        "monitoring_level",
        0,
        "0: capture a profile. 1: print device type and utilization of the matrix units. 2: also print idle, "
        "step and infeed time.",
    ),
    Flag("num_queries", 100, "How many monitoring queries to make."),
    Flag("display_timestamp", False, "Whether each monitoring result starts with the time.", ("timestamp",)),
)
_HELP = ("help", "h", "helpshort", "helpfull")
_ABOUT = (
    "Capture a profile of a Cloud TPU, or monitor it. ('tpuprof capture' and 'tpuprof monitor' do the same, "
    "and more.)\n\n"
    f"{EXIT_CODES}\n\nFlags:\n"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if any(argument.startswith("-") and argument.lstrip("-") in _HELP for argument in arguments):
        sys.stdout.write(_ABOUT + flags_help(FLAGS))
        return 0
    if "--version" in arguments:
        sys.stdout.write(f"{NAME} of tpuprof {__version__}\n")
        return 0
    return exit_code_of(NAME, partial(_run, arguments))


def _run(arguments: Sequence[str]) -> int:
    values = parse_flags(arguments, FLAGS)
    where = _where(values)
    level = _number(values, "monitoring_level")
    if level:
        return _monitor(where, values, level)
    if not values["logdir"]:
        raise UsageError(
            "No logdir given to save the profile in.",
            "Add --logdir=DIR, or --monitoring_level=1 to print numbers only.",
        )
    from tb_tpuprof.capture.options import CaptureOptions

    options = CaptureOptions(
        duration_ms=_number(values, "duration_ms") or TRACING_MS,
        num_tracing_attempts=max(1, _number(values, "num_tracing_attempts")),
        include_dataset_ops=bool(values["include_dataset_ops"]),
    )
    return capture_run(
        CaptureRequest(
            find_targets(where), options, str(values["logdir"]), workers=split(str(values["workers_list"]))
        )
    )


def _monitor(where: Where, values: Mapping[str, Value], level: int) -> int:
    from tb_tpuprof.capture.monitor import MonitorOptions

    n = _number(values, "num_queries")
    options = MonitorOptions(level, _number(values, "duration_ms") or MONITORING_MS, max(n, 1))
    targets = find_targets(where)
    lines = partial(
        old_lines, level=level, with_time=bool(values["display_timestamp"]), with_target=len(targets) > 1
    )
    return watch(targets, options, lines)


def _number(values: Mapping[str, Value], name: str) -> int:
    return int(values[name])


def _where(values: Mapping[str, Value]) -> Where:
    address, tpu, zone, project = (
        str(values[name]) for name in ("service_addr", "tpu", "tpu_zone", "gcp_project")
    )
    if not address and not tpu:
        raise UsageError("Neither a TPU nor an address given.", "Add --tpu=NAME or --service_addr=HOST:PORT.")
    if address and tpu:
        sys.stderr.write(f"{NAME}: both --service_addr and --tpu given; ignoring --tpu.\n")
        tpu = ""
    return Where(address, tpu, zone, project)


if __name__ == "__main__":
    sys.exit(main())
