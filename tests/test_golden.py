"""Every tool's payload of every demo run equals the golden that was reviewed. `make golden`
writes them anew.
"""

from __future__ import annotations

import pytest

from tb_tpuprof.tools import all_tools
from tests.golden_files import GOLDEN, demo_runs, golden_text


@pytest.mark.parametrize("log", sorted(demo_runs()))
@pytest.mark.parametrize("tool", [tool.name for tool in all_tools()])
def test_golden(log: str, tool: str) -> None:
    path = GOLDEN / log / f"{tool}.json"
    assert path.exists(), "run `make golden`"
    assert golden_text(log, tool) == path.read_text("utf-8"), (
        "if the change is meant, run `make golden` and review the diff"
    )
