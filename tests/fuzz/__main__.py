"""Fuzz all subjects for some time, in as many processes as there are processors.

    python -m tests.fuzz --time 600                  all subjects for ten minutes
    python -m tests.fuzz --subject xspace --count 1000000
    python -m tests.fuzz --subject json --again 1234  one mutant, in this process, with its traceback

A process that dies or takes longer than `--limit` seconds for a mutant is a finding, and so is every
exception that is not the package's own. The exit code is the number of findings, at most 100.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.fuzz.mutations import mutated
from tests.fuzz.subjects import SUBJECTS, Subject, remove_folder

_MOST_FINDINGS = 100
_BATCH = 50
_START_S = 60.0  # for a process to start


def mutant(subject: Subject, number: int) -> bytes:
    """The mutant of that number."""
    rng = random.Random(f"{subject.name}:{number}")
    seeds = subject.seeds()
    return mutated(seeds[number % len(seeds)], rng, seeds)


def work(subject: Subject) -> None:
    """A worker: reads numbers from standard input, reports each before and after it is run."""
    for line in sys.stdin:
        number = int(line)
        print(f"begin {number}", flush=True)
        try:
            outcome = subject.run(mutant(subject, number))
        except Exception as error:
            outcome = f"unclean {type(error).__name__}: {str(error)[:300]!r}"
        print(f"end {outcome}", flush=True)
    remove_folder()


@dataclass
class Worker:
    """A process, and the mutant that it is at."""

    subject: Subject
    command: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] = field(init=False)
    number: int = -1
    n_waiting: int = 0
    since: float = 0.0
    buffer: bytes = b""

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start the process, again if it has ended."""
        usual = (sys.executable, "-m", "tests.fuzz", "--subject", self.subject.name, "--work")
        self.process = subprocess.Popen(
            self.command or usual, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.n_waiting, self.buffer, self.since, self.number = 0, b"", time.monotonic(), -1

    def send(self, numbers: range) -> None:
        """Hand out mutants."""
        assert self.process.stdin
        self.n_waiting += len(numbers)
        self.process.stdin.write("".join(f"{number}\n" for number in numbers).encode())
        self.process.stdin.flush()


class Fuzzing:
    """One subject: workers, outcomes and findings. `command`: what the workers run, instead of `work`."""

    def __init__(
        self, subject: Subject, n_workers: int, limit_s: float, command: tuple[str, ...] = ()
    ) -> None:
        self.subject, self.limit_s = subject, limit_s
        self.workers = [Worker(subject, command) for _ in range(n_workers)]
        self.outcomes: Counter[str] = Counter()
        self.findings: list[str] = []
        self.next = 0

    def run(self, first: int, count: int, ends_at: float) -> None:
        """Fuzz `count` mutants (0: any number) from `first` on, until `ends_at`."""
        self.next, last = first, first + count if count else sys.maxsize
        while len(self.findings) < _MOST_FINDINGS:
            for worker in self.workers:
                if not worker.n_waiting and self.next < last and time.monotonic() < ends_at:
                    numbers = range(self.next, min(self.next + _BATCH, last))
                    self.next = numbers.stop
                    worker.send(numbers)
            busy = [worker for worker in self.workers if worker.n_waiting]
            if not busy:
                break
            ready, _, _ = select.select([worker.process.stdout for worker in busy], [], [], 1.0)
            for worker in busy:
                if worker.process.stdout in ready:
                    self._read(worker)
                elif time.monotonic() - worker.since > self.limit_s + _START_S * (worker.number < 0):
                    worker.process.kill()
                    self._lost(worker, f"hangs: more than {self.limit_s:.0f} s")
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()

    def _read(self, worker: Worker) -> None:
        assert worker.process.stdout
        data = os.read(worker.process.stdout.fileno(), 65536)
        if not data:
            code = worker.process.wait()
            self._lost(worker, f"ends the process: {_name(code)}")
            return
        *lines, worker.buffer = (worker.buffer + data).split(b"\n")
        for line in lines:
            kind, _, text = line.decode().partition(" ")
            worker.since = time.monotonic()
            if kind == "begin":
                worker.number = int(text)
                continue
            worker.n_waiting -= 1
            self.outcomes[text.partition(" ")[0]] += 1
            if text.startswith("unclean"):
                self._found(worker.number, text)

    def _lost(self, worker: Worker, what: str) -> None:
        self.outcomes["lost"] += 1
        self._found(worker.number, what)
        worker.process.wait()
        worker.start()

    def _found(self, number: int, what: str) -> None:
        self.findings.append(f"{self.subject.name} {number}: {what}")
        print(self.findings[-1], flush=True)


def _name(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def main() -> int:
    """The command line; returns the number of findings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--time", type=float, default=60.0, help="seconds in all")
    parser.add_argument(
        "--count", type=int, default=0, help="mutants per subject; 0: as many as there is time"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for a mutant")
    parser.add_argument("--subject", choices=[subject.name for subject in SUBJECTS], default="")
    parser.add_argument("--again", type=int, default=-1, help="run one mutant here")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    subjects = [one for one in SUBJECTS if arguments.subject in ("", one.name)]
    if arguments.work:
        work(subjects[0])
        return 0
    if arguments.again >= 0:
        print(subjects[0].run(mutant(subjects[0], arguments.again)))
        return 0
    n_workers = os.cpu_count() or 1
    findings: list[str] = []
    print("| subject | mutants | opened | refused | findings | per second |")
    print("| --- | --- | --- | --- | --- | --- |")
    for subject in subjects:
        fuzzing = Fuzzing(subject, n_workers, arguments.limit)
        began = time.monotonic()
        seconds = arguments.time / len(subjects) if not arguments.count else 10**9
        fuzzing.run(arguments.first, arguments.count, began + seconds)
        done, took = fuzzing.outcomes, time.monotonic() - began
        findings += fuzzing.findings
        print(
            f"| {subject.name} | {done.total():,} | {done['opened']:,} | {done['refused']:,} | "
            f"{len(fuzzing.findings)} | {done.total() / took:,.0f} |",
            flush=True,
        )
    return min(len(findings), _MOST_FINDINGS)


if __name__ == "__main__":
    sys.exit(main())
