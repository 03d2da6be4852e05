"""For all tests: columns are cached in a folder of their own, never in the developer's."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


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
