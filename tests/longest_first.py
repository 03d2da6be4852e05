"""Which test files start first where several workers share them: those that take longest, so that no worker
ends with a long one while the others have nothing left.

`durations.json` has roughly the seconds of each file that takes more than a few, for its slow tests and for
the others: only the order matters. The number of tests ranks files that it does not name. To rewrite it:
`TPUPROF_DURATIONS=tests/durations.json make test slow`.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

RECORDED = Path(__file__).with_name("durations.json")
VARIABLE = "TPUPROF_DURATIONS"
SETS = ("other", "slow")
LEAST_S = 4.0  # recorded from here on
_TEST_S = 0.03  # of a test in a file that is not recorded
Seconds = Mapping[str, Mapping[str, float]]


class Part(NamedTuple):
    """The tests of a file that are in the same set."""

    file: str
    set: str


def recorded() -> Seconds:
    """Seconds by set and file."""
    found: Seconds = json.loads(RECORDED.read_text("utf-8"))
    return found


def longest_first(parts: Iterable[Part], seconds: Seconds) -> dict[str, int]:
    """The place of each file, by the sum of its parts. `parts`: one of each test."""
    total: dict[str, float] = defaultdict(float)
    for part, n_tests in Counter(parts).items():
        total[part.file] += seconds.get(part.set, {}).get(part.file, _TEST_S * n_tests)
    order = sorted(total, key=lambda file: (-total[file], file))
    return {file: place for place, file in enumerate(order)}


def part_of(item: pytest.Item) -> Part:
    """The part that a test belongs to."""
    return Part(item.nodeid.partition("::")[0], SETS[item.get_closest_marker("slow") is not None])


class Recorder:
    """A plugin that adds up what the tests of each part take, and writes it at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[Part, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Each of a test's setup, call and teardown."""
        is_slow = "slow" in report.keywords
        self.seconds[Part(report.nodeid.partition("::")[0], SETS[is_slow])] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Parts that were not run stay as they are."""
        known = json.loads(self.path.read_text("utf-8")) if self.path.exists() else {}
        found = {Part(file, name): s for name, files in known.items() for file, s in files.items()}
        found |= self.seconds
        content = {
            name: {
                part.file: round(s) for part, s in sorted(found.items()) if part.set == name and s >= LEAST_S
            }
            for name in SETS
        }
        self.path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def register(config: pytest.Config) -> None:
    """Record durations where the variable asks for it, in the process that hears of all tests."""
    path = os.environ.get(VARIABLE)
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(path)), "durations")
