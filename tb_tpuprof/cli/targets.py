"""The jobs that a command addresses: addresses, or names of Cloud TPUs, which are looked up."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tb_tpuprof.capture.targets import Target, parse_targets
from tb_tpuprof.capture.tpu_names import API_URL, API_VARIABLE, TpuPlace, resolve_tpus


@dataclass(frozen=True)
class Where:
    """The targets as the user specified them."""

    service_addr: str = ""
    tpu: str = ""
    tpu_zone: str = ""
    gcp_project: str = ""
    tpu_api: str = ""


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that select the jobs."""
    group = parser.add_argument_group("which jobs (one of the two)")
    one = group.add_mutually_exclusive_group(required=True)
    one.add_argument(
        "--service_addr",
        metavar="HOST:PORT,…",
        nargs="+",
        default=[],
        help="profiler servers in the jobs, such as localhost:6009,10.0.0.2:8466; grpcs://HOST:PORT for TLS",
    )
    one.add_argument(
        "--tpu",
        metavar="NAME",
        nargs="+",
        default=[],
        help="names of Cloud TPUs, with all their workers; NAME:9012 for another port",
    )
    group.add_argument(
        "--tpu_zone",
        metavar="ZONE",
        default="",
        help="the TPUs' zone (default: the zone of this machine, on Google Cloud)",
    )
    group.add_argument(
        "--gcp_project",
        metavar="PROJECT",
        default="",
        help="the TPUs' project (default: the project of the credentials)",
    )
    group.add_argument(
        "--tpu_api",
        metavar="URL",
        default="",
        help=f"address of the Cloud TPU API (default: {API_VARIABLE}, else {API_URL})",
    )


def where_of(arguments: argparse.Namespace) -> Where:
    """The `Where` of parsed arguments."""
    addresses, names = ",".join(arguments.service_addr), ",".join(arguments.tpu)
    return Where(addresses, names, arguments.tpu_zone, arguments.gcp_project, arguments.tpu_api)


def find_targets(where: Where) -> tuple[Target, ...]:
    """The addresses. Looks up TPU names, which takes a moment, and prints the result on stderr."""
    if not where.tpu:
        return parse_targets(where.service_addr, "--service_addr")
    targets = resolve_tpus(where.tpu, TpuPlace(where.tpu_zone, where.gcp_project, where.tpu_api))
    sys.stderr.write(f"{where.tpu}: {described(targets)}\n")
    return targets


def described(targets: Sequence[Target]) -> str:
    """Number of targets, and the first few of them."""
    some = ", ".join(map(str, targets[:4])) + (" …" if len(targets) > 4 else "")
    return f"{len(targets)} worker{'s' if len(targets) != 1 else ''} ({some})"
