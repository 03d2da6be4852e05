"""Which jobs a command is about: addresses, or names of Cloud TPUs that are looked up."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tb_tpuprof.capture.targets import Target, parse_targets
from tb_tpuprof.capture.tpu_names import API_URL, API_VARIABLE, TpuPlace, resolve_tpus


@dataclass(frozen=True)
class Where:
    """What the user said of the targets."""

    service_addr: str = ""
    tpu: str = ""
    tpu_zone: str = ""
    gcp_project: str = ""
    tpu_api: str = ""


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that say which jobs."""
    group = parser.add_argument_group("which jobs (one of the two)")
    one = group.add_mutually_exclusive_group(required=True)
    one.add_argument(
        "--service_addr",
        metavar="HOST:PORT,…",
        nargs="+",
        default=[],
        help="profiler servers in the jobs, such as localhost:6009,10.0.0.2:8466",
    )
    one.add_argument(
        "--tpu",
        metavar="NAME",
        nargs="+",
        default=[],
        help="names of Cloud TPUs, all of whose workers are meant; NAME:9012 for another port",
    )
    group.add_argument(
        "--tpu_zone",
        metavar="ZONE",
        default="",
        help="the TPUs' zone (default: this machine's own, on Google Cloud)",
    )
    group.add_argument(
        "--gcp_project",
        metavar="PROJECT",
        default="",
        help="the TPUs' project (default: that of the credentials)",
    )
    group.add_argument(
        "--tpu_api",
        metavar="URL",
        default="",
        help=f"address of the Cloud TPU API (default: {API_VARIABLE}, else {API_URL})",
    )


def where_of(arguments: argparse.Namespace) -> Where:
    """From parsed arguments."""
    addresses, names = ",".join(arguments.service_addr), ",".join(arguments.tpu)
    return Where(addresses, names, arguments.tpu_zone, arguments.gcp_project, arguments.tpu_api)


def find_targets(where: Where) -> tuple[Target, ...]:
    """The addresses. TPU names are looked up, which takes a moment: what was found is said on stderr."""
    if not where.tpu:
        return parse_targets(where.service_addr)
    targets = resolve_tpus(where.tpu, TpuPlace(where.tpu_zone, where.gcp_project, where.tpu_api))
    sys.stderr.write(f"{where.tpu}: {told(targets)}\n")
    return targets


def told(targets: Sequence[Target]) -> str:
    """How many there are, and the first few."""
    some = ", ".join(map(str, targets[:4])) + (" …" if len(targets) > 4 else "")
    return f"{len(targets)} worker{'s' if len(targets) != 1 else ''} ({some})"
