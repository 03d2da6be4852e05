"""Measure this project beside xprof on the same files in one run; print a table and write it to
bench/results.md.

python -m bench.bench [--only RUN …] [--rounds 3] [--side ours|peer] [--output bench/results.md]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.cases import DEMO_MEASURES, MEASURES, Measure
from bench.environments import ROOT
from bench.measurement import OURS, SIDES, Result, measure_both, warm_up
from bench.report import report
from bench.small_requests import SMALL_REQUESTS, measure_beside
from bench.traces import (
    DEVICES,
    EIGHT_HOSTS,
    FLEETS,
    JAX_CPU,
    MULTISLICE,
    OVERLAP,
    PROGRAM,
    REQUESTS,
    SNAPSHOT,
    STREAM,
    SYNTHETIC,
    SYNTHETIC_50M,
    TABLE,
    TF_DATA,
    TRACK_EVENTS,
    Run,
    demo_runs,
    devices_run,
    eight_hosts_run,
    fleet_run,
    jax_cpu_run,
    large_run,
    multislice_run,
    overlap_run,
    program_run,
    requests_run,
    snapshot_run,
    stream_run,
    synthetic_run,
    table_run,
    tf_data_run,
    track_events_run,
)

GENERATED: dict[str, Callable[[], Run]] = {
    JAX_CPU: jax_cpu_run,
    SYNTHETIC: synthetic_run,
    EIGHT_HOSTS: eight_hosts_run,
    **{name: partial(fleet_run, name) for name in FLEETS},
    DEVICES: devices_run,
    MULTISLICE: multislice_run,
    OVERLAP: overlap_run,
    PROGRAM: program_run,
    TF_DATA: tf_data_run,
    REQUESTS: requests_run,
    STREAM: stream_run,
    TRACK_EVENTS: track_events_run,
    SNAPSHOT: snapshot_run,
    TABLE: table_run,
    SYNTHETIC_50M: large_run,
}
ON_REQUEST = (SYNTHETIC_50M,)  # takes minutes and gigabytes


def plan(only: list[str]) -> list[tuple[Run, Measure]]:
    """What to measure, in order; runs that were not requested are not generated."""
    runs = [run for run in demo_runs() if not only or run.name in only]
    pairs = [(run, measure) for run in runs for measure in DEMO_MEASURES]
    for name, make in GENERATED.items():
        if name in only or (not only and name not in ON_REQUEST):
            run = make()
            pairs += [(run, measure) for measure in MEASURES[name]]
    return pairs


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="RUN",
        help="names of runs: a demo log's folder or " + ", ".join((*GENERATED, SMALL_REQUESTS)),
    )
    parser.add_argument("--rounds", type=int, default=3, help="samples of each side; the median counts")
    parser.add_argument("--side", choices=SIDES, help="measure one side alone")
    parser.add_argument("--output", type=Path, default=ROOT / "bench" / "results.md")
    arguments = parser.parse_args()
    sides = (arguments.side,) if arguments.side else SIDES
    pairs = plan(arguments.only)
    wants_beside = (not arguments.only or SMALL_REQUESTS in arguments.only) and OURS in sides
    if not pairs and not wants_beside:
        parser.error(f"no such run: {' '.join(arguments.only)}")
    results: list[Result] = []
    for i, (run, measure) in enumerate(pairs, start=1):
        print(f"[{i}/{len(pairs)}] {run.name}: {measure.title}", flush=True)
        if not results or results[-1].run != run:
            warm_up(run, measure, sides)
        results.append(measure_both(run, measure, arguments.rounds, sides))
        arguments.output.write_text(
            report(results), encoding="utf-8"
        )  # keep results if a later measurement does not finish
    beside = None
    if wants_beside:
        print(f"{SMALL_REQUESTS}: 50 clients beside a cold run", flush=True)
        beside = measure_beside(jax_cpu_run(), synthetic_run())
        arguments.output.write_text(report(results, beside), encoding="utf-8")
    print("\n" + report(results, beside))


if __name__ == "__main__":
    main()
