"""The live comparison as a test, where an interpreter that has the peer is at hand."""

import os
from pathlib import Path

import pytest

from tests.conformance import live


def test_the_peer_says_the_same_of_synthetic_runs_or_the_difference_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    python = os.environ.get("TPUPROF_PEER_PYTHON", "")
    if not python or not Path(python).exists():
        pytest.skip("TPUPROF_PEER_PYTHON does not name an interpreter that has xprof (`make conformance` makes one)")
    status = live.main()
    assert status == 0, "\n".join(line for line in capsys.readouterr().out.splitlines() if " equal" not in line and "listed: " not in line)


def test_an_unlisted_difference_fails() -> None:
    same, other = live.Compared("overview_page", "x", 1.0, 1.0), live.Compared("overview_page", "x", 1.0, 2.0)
    assert same.is_equal
    assert not other.is_equal
    assert live.reason_of("gpu", other) is None
    assert live.report({"gpu": [other]}) == 1
