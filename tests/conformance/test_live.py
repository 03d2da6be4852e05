"""The live comparison as a test, where an interpreter that has the peer is at hand."""

import pytest

from bench.environments import peer_if_any
from tests.conformance import live


def test_the_peer_says_the_same_of_synthetic_runs_or_the_difference_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    if not peer_if_any():
        pytest.skip("*** NOT RUN: no interpreter has xprof; `make conformance` makes one, or name one in TPUPROF_PEER_PYTHON. ***")
    status = live.main()
    assert status == 0, "\n".join(line for line in capsys.readouterr().out.splitlines() if " equal" not in line and "listed: " not in line)


def test_an_unlisted_difference_fails() -> None:
    same, other = live.Compared("overview_page", "x", 1.0, 1.0), live.Compared("overview_page", "x", 1.0, 2.0)
    assert same.is_equal
    assert not other.is_equal
    assert live.reason_of("gpu", other) is None
    assert live.report({"gpu": [other]}) == 1
