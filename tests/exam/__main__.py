"""`python -m tests.exam run --seed N --out DIR [--only PATTERN] [--removed]`, `python -m tests.exam score
DIR`, `python -m tests.exam met DIR`, `python -m tests.exam peer DIR`, `python -m tests.exam tracing DIR`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from bench.environments import ROOT, peer_python
from tests.exam import tracing
from tests.exam.jobs import jobs
from tests.exam.runner import PATIENCE_S, run
from tests.exam.score import explained, marks, met, ready, report, truths


def run_all(options: argparse.Namespace) -> int:
    """Run the jobs whose label matches, one after the other. Returns the number of failures."""
    chosen = [job for job in jobs(options.seed) if re.search(options.only, job.label)]
    n_failed, began = 0, time.monotonic()
    for job in chosen:
        start = time.monotonic()
        try:
            truth = run(job, options.out, options.removed, options.patience)
        except (RuntimeError, ValueError, OSError) as problem:
            n_failed += 1
            print(f"{job.label}: FAILED\n{problem}", flush=True)
            continue
        step, share = truth["step_s"] * 1e3, truth.get("share")
        met = "" if share is None else f", met {share:.0%}"
        if "gain_s" in truth:
            met += f", gain {truth['gain_s'] * 1e3:.1f} ± {truth['gain_noise_s'] * 1e3:.1f} ms"
        print(f"{job.label}: step {step:.1f} ms{met} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{len(chosen)} jobs, {n_failed} failed, {(time.monotonic() - began) / 60:.1f} min")
    return n_failed


def ask_peer(folder: Path) -> int:
    """Write xprof's answers about a folder's jobs, for `score DIR --answers peer.json`, under a Python
    without this project.
    """
    return subprocess.run(
        [peer_python(), "-m", "tests.exam.peer", str(folder.absolute())], cwd=ROOT, check=False
    ).returncode


def main() -> int:
    """Run or score."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.exam", description="jobs with planted causes, and the score of their diagnoses"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="generate and profile the jobs of a seed")
    runs.add_argument("--seed", type=int, default=1)
    runs.add_argument("--out", type=Path, required=True)
    runs.add_argument("--only", default="", help="run only jobs whose label matches this regular expression")
    runs.add_argument(
        "--removed", action="store_true", help="also run each job without its cause, to measure the gain"
    )
    runs.add_argument(
        "--patience",
        type=float,
        default=PATIENCE_S,
        help="maximum seconds that each job waits for a quiet machine",
    )
    scores = commands.add_parser("score", help="score the diagnoses of a folder that `run` wrote")
    scores.add_argument("folder", type=Path)
    scores.add_argument(
        "--answers",
        default="",
        metavar="NAME",
        help="read FOLDER/<job>/NAME, for example why.json, instead of diagnosing with tb_tpuprof",
    )
    shares = commands.add_parser("met", help="list the measured shares of a folder's jobs")
    shares.add_argument("folder", type=Path)
    peers = commands.add_parser(
        "peer", help="write xprof's answers about a folder's jobs to peer.json in each job's folder"
    )
    peers.add_argument("folder", type=Path)
    frames = commands.add_parser(
        "tracing", help="diagnose the jobs of a folder with and without their Python frames"
    )
    frames.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "met":
        print(met(truths(options.folder)))
        return 0
    if options.command == "peer":
        return ask_peer(options.folder)
    if options.command == "tracing":
        frame_pairs = tracing.pairs(options.folder)
        print(tracing.report(frame_pairs))
        return int(any(one.worse for one in frame_pairs if not one.frames.is_small))
    if options.command == "score":
        print(report(marks(options.folder, ready(options.answers) if options.answers else explained)))
        return 0
    return run_all(options)


if __name__ == "__main__":
    sys.exit(main())
