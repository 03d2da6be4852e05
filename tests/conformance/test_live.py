"""The live comparison as a test, where an interpreter that has the peer is at hand."""

from dataclasses import replace

import pytest

from bench.environments import peer_if_any
from tests.conformance import live


@pytest.mark.slow
def test_the_peer_says_the_same_of_synthetic_runs_or_the_difference_is_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not peer_if_any():
        pytest.skip(
            "*** NOT RUN: no interpreter has xprof; `make conformance` makes one, or name one in "
            "TPUPROF_PEER_PYTHON. ***"
        )
    status = live.main()
    assert status == 0, "\n".join(
        line
        for line in capsys.readouterr().out.splitlines()
        if " equal" not in line and "listed: " not in line
    )


def test_an_unlisted_difference_fails() -> None:
    same, other = live.Compared("overview_page", "x", 1.0, 1.0), live.Compared("overview_page", "x", 1.0, 2.0)
    assert same.is_equal
    assert not other.is_equal
    assert live.reason_of("gpu", other) is None
    assert live.report({"gpu": [other]}) == 1


def test_a_listed_difference_that_is_gone_fails_where_all_its_runs_were_compared() -> None:
    """Of some of its runs alone nobody can tell."""
    key = ("gpu*", "overview_page", "device type")
    assert key in live.ALL_DIFFERENCES
    assert live.report({"gpu": []}) == 0
    assert live.report({run: [] for run in live.RUNS if run.startswith("gpu")}) == 1
    assert (
        live.report({"corpus_own_jax_cpu__mlp": [], "tpu": []}) == 1
    )  # that page of XLA:CPU's operations would be the peer's, too
    assert live.report({"corpus_tracelens_mi300_jax__jax08_gemm": []}) == 1


def test_small_numbers_differ_too_where_the_floor_is_low() -> None:
    small = live.Compared("op_profile", "x", 1e-6, 2e-6)
    assert small.is_equal
    assert not replace(small, floor=1e-9).is_equal
