"""The goldens of many recorded runs."""

from __future__ import annotations

import pytest

from tests.wide_goldens import RUNS, WIDE_GOLDEN, golden_text


@pytest.mark.parametrize("run", sorted(RUNS))
def test_golden(run: str) -> None:
    path = WIDE_GOLDEN / "runs" / f"{run}.json"
    assert path.exists(), "run `make golden`"
    assert golden_text(run) == path.read_text("utf-8"), (
        "if the change is meant, run `make golden` and review the diff"
    )


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in WIDE_GOLDEN.glob("*/*.json")} == set(RUNS), "run `make golden`"
