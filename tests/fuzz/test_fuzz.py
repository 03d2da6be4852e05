"""A few seconds of fuzzing of each subject, and that the fuzzer notices what it looks for."""

from __future__ import annotations

import random
import signal
import sys
import time

import pytest

from tests.fuzz.__main__ import Fuzzing, mutant
from tests.fuzz.mutations import mutated
from tests.fuzz.subjects import OPENED, REFUSED, SUBJECTS, Subject

N_MUTANTS = 150


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_mutants_are_refused_or_opened(subject: Subject) -> None:
    n = max(N_MUTANTS // subject.cost, 3)
    outcomes = {subject.run(mutant(subject, number)) for number in range(10**6, 10**6 + n)}
    assert outcomes <= {OPENED, REFUSED}


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_seeds_themselves_are_opened(subject: Subject) -> None:
    """Otherwise the mutants of a seed would test nothing but its refusal."""
    outcomes = [subject.run(seed) for seed in subject.seeds()]
    assert outcomes.count(OPENED) > len(outcomes) / 2


def test_equal_numbers_give_equal_mutants_and_unlike_ones_differ() -> None:
    subject = SUBJECTS[0]
    assert mutant(subject, 7) == mutant(subject, 7)
    assert len({mutant(subject, number) for number in range(50)}) > 40
    assert mutated(b"", random.Random(1)) == b""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (f"os.kill(os.getpid(), {int(signal.SIGSEGV)})", "ends the process: SIGSEGV"),
        ("time.sleep(60)", "hangs: more than 2 s"),
        ("raise KeyError('x')", "unclean KeyError"),
    ],
)
def test_crashes_hangs_and_unclean_errors_are_found(fault: str, text: str) -> None:
    """A subject that fails on every mutant whose number ends in 7."""
    code = (
        "import os, time\n"
        "import tests.fuzz.__main__ as fuzz\n"
        "from tests.fuzz.subjects import Subject\n"
        "def run(number):\n"
        "    if number % 10 == 7:\n"
        f"        {fault}\n"
        "    return 'opened'\n"
        "fuzz.mutant = lambda subject, number: number\n"
        "fuzz.work(Subject('reply', tuple, run))\n"
    )
    unused = Subject("reply", tuple, lambda data: OPENED)
    fuzzing = Fuzzing(unused, 1, 2.0, (sys.executable, "-c", code))
    fuzzing.run(0, 120, time.monotonic() + 60)
    assert fuzzing.findings[0] == f"reply 7: {fuzzing.findings[0].partition(': ')[2]}"
    assert all(text in finding for finding in fuzzing.findings)
    assert len(fuzzing.findings) >= 3
    assert fuzzing.outcomes["opened"] >= 21
