"""For all tests: columns are cached in a folder of their own, never in the developer's, and Ctrl-C is heard.
Tests of real jobs, whose timing a busy machine changes, run a failed job once more. Where several workers
share the files, the longest start first.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import longest_first
from tests.truth.runner import profiled

# A busy machine may take long for a single example.
settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")

REAL_JOBS = frozenset({"truth", "integration", "exam"})


def pytest_configure(config: pytest.Config) -> None:
    """Durations are recorded where that is asked for."""
    longest_first.register(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests in the folders of real jobs get a second run; all others fail at once. A worker has the
    longest files first.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = longest_first.longest_first(map(longest_first.part_of, items), longest_first.recorded())
        items.sort(key=lambda item: place[longest_first.part_of(item).file])
    for item in items:
        if item.path.parent.name in REAL_JOBS and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish() -> None:
    """Garbage collection skips what exists before the first test: modules and the tests themselves."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def new_profiles(request: pytest.FixtureRequest) -> None:
    """A second run profiles its programs anew."""
    if getattr(request.node, "execution_count", 1) > 1:
        profiled.cache_clear()


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Processes that tests start inherit it."""
    before = os.environ.get("TPUPROF_CACHE_DIR")
    os.environ["TPUPROF_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["TPUPROF_CACHE_DIR"]
    else:
        os.environ["TPUPROF_CACHE_DIR"] = before


@pytest.fixture(scope="session", autouse=True)
def heard_interrupts() -> None:
    """A shell without job control starts what it runs in the background with SIGINT ignored, and every
    process that a test starts would inherit that: its own Ctrl-C would be lost.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
