"""`tpuprof monitor`: step time, idle time and input wait of running jobs, one line per second and target."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tb_tpuprof.capture.targets import Target
from tb_tpuprof.cli.targets import add_target_arguments, find_targets, where_of
from tb_tpuprof.encode.text import printable
from tb_tpuprof.units import format_fraction, format_time, three_digits

if TYPE_CHECKING:  # it imports gRPC, which other commands should not wait for
    from tb_tpuprof.capture.monitor import MonitorOptions, MonitorSample

_UNKNOWN = "—"
NONE_MEASURED, SOME_MEASURED = 6, 8


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    text = (
        "Print step time, idle time and input wait of running jobs until Ctrl-C. TPU servers report them "
        "through their monitoring service; other jobs are profiled briefly, and the profile is analyzed. "
        "Nothing is saved."
    )
    parser = subparsers.add_parser(
        "monitor", help="watch running jobs: step time, idle time, input wait", description=text
    )
    add_target_arguments(parser)
    parser.add_argument(
        "--monitoring_level",
        type=int,
        default=2,
        choices=(1, 2),
        help="1: device and matrix units only; 2 (default): all",
    )
    parser.add_argument(
        "--duration_ms",
        type=int,
        default=1000,
        metavar="MS",
        help="time covered by a sample, and interval between samples (default 1000)",
    )
    parser.add_argument(
        "--num_queries",
        type=int,
        default=0,
        metavar="N",
        help="stop after N samples per target (default: never)",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="json: one object per line"
    )
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Print samples as they arrive; returns the exit code."""
    from tb_tpuprof.capture.monitor import MonitorOptions

    options = MonitorOptions(arguments.monitoring_level, arguments.duration_ms, arguments.num_queries)
    as_text = json_line if arguments.format == "json" else text_line
    return watch(find_targets(where_of(arguments)), options, as_text)


def watch(targets: Sequence[Target], options: MonitorOptions, as_text: Callable[[MonitorSample], str]) -> int:
    """Print each sample to stdout; returns exit code 0 if every target had numbers, 8 if some, 6 if none."""
    from tb_tpuprof.capture.monitor import monitor
    from tb_tpuprof.session import measure

    measured = set()
    for sample in monitor(targets, options, measure):
        if not sample.error:
            measured.add(sample.target)
        sys.stdout.write(printable(as_text(sample)))
        sys.stdout.flush()
    return 0 if len(measured) == len(targets) else SOME_MEASURED if measured else NONE_MEASURED


def json_line(sample: MonitorSample) -> str:
    """The sample as one line of JSON, with the field names of `docs/http_api.md`."""
    return json.dumps(sample.row(), ensure_ascii=False) + "\n"


def text_line(sample: MonitorSample) -> str:
    """The sample as one line of text."""
    clock = time.strftime("%H:%M:%S", time.localtime(sample.time_unix_ms / 1000))
    head = f"{clock}  {sample.target}"
    if sample.error:
        return f"{head}  {sample.error} {sample.remedy}\n"
    cores = f" ×{sample.n_cores}" if sample.n_cores else ""
    parts = [f"{head}  {sample.device_type or 'device unknown'}{cores}"]
    if sample.matrix_unit_fraction is not None:
        parts.append(f"matrix units {format_fraction(sample.matrix_unit_fraction)}")
    if sample.device_idle_fraction is not None:
        parts.append(f"idle {format_fraction(sample.device_idle_fraction)}")
    if sample.step_time_avg_ps is not None:
        span = _range(sample.step_time_min_ps, sample.step_time_max_ps, format_time)
        parts.append(f"step {format_time(sample.step_time_avg_ps)}{span}")
    elif sample.n_steps == 0:
        parts.append("no step completed")
    if sample.input_fraction_avg is not None:
        share = _range(sample.input_fraction_min, sample.input_fraction_max, format_fraction)
        parts.append(f"input {format_fraction(sample.input_fraction_avg)}{share}")
    if sample.n_steps:
        parts.append(f"{sample.n_steps} step{'s' if sample.n_steps != 1 else ''}")
    return "  ".join(parts) + "\n"


def _range(low: float | None, high: float | None, form: Callable[[float], str]) -> str:
    return "" if low is None or high is None else f" ({form(low)} – {form(high)})"


def old_lines(sample: MonitorSample, level: int, with_time: bool, with_target: bool) -> str:
    """The sample in the output format of the old `capture_tpu_profile`, which scripts parse. Unknown values
    are dashes.
    """
    lines = [f"{sample.target}:"] if with_target else []
    if with_time:
        lines.append(f"Timestamp: {time.strftime('%H:%M:%S', time.localtime(sample.time_unix_ms / 1000))}")
    if sample.error:
        return "\n  ".join([*lines, f"{sample.error} {sample.remedy}"]) + "\n"
    is_tpu = not sample.device_type or sample.device_type.startswith("TPU")
    kind = "TPU" if is_tpu else "device"
    lines.append(f"{'TPU' if is_tpu else 'Device'} type: {sample.device_type or _UNKNOWN}")
    if level >= 2:
        lines.append(f"Number of {'TPU cores' if is_tpu else 'devices'}: {sample.n_cores or _UNKNOWN}")
        lines.append(
            f"{kind[0].upper()}{kind[1:]} idle time (lower is better): "
            f"{_percent(sample.device_idle_fraction)}"
        )
    lines.append(
        f"Utilization of {'TPU ' if is_tpu else ''}Matrix Units (higher is better): "
        f"{_percent(sample.matrix_unit_fraction)}"
    )
    if level >= 2:
        times = (sample.step_time_avg_ps, sample.step_time_min_ps, sample.step_time_max_ps)
        shares = (sample.input_fraction_avg, sample.input_fraction_min, sample.input_fraction_max)
        lines.append(f"Step time: {_three([_milliseconds(value) for value in times])}")
        lines.append(f"Infeed percentage: {_three([_percent(value) for value in shares])}")
    return "\n  ".join(lines) + "\n" if with_target else "".join(f"  {line}\n" for line in lines)


def _three(texts: Sequence[str]) -> str:
    return ", ".join(f"{text} ({name})" for text, name in zip(texts, ("avg", "min", "max"), strict=True))


def _percent(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{three_digits(value * 100)}%"


def _milliseconds(value_ps: float | None) -> str:
    return _UNKNOWN if value_ps is None else f"{three_digits(value_ps / 1e9).replace(',', '')}ms"
