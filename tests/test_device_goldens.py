"""The goldens of devices and requests that the demo runs lack."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.device_goldens import DEVICE_GOLDEN, GOLDENS, golden_text


@pytest.mark.parametrize(("run", "tool"), GOLDENS)
def test_golden(run: str, tool: str) -> None:
    path = DEVICE_GOLDEN / run / f"{tool}.json"
    assert path.exists(), "run `make golden`"
    assert golden_text(run, tool) == path.read_text("utf-8"), (
        "if the change is meant, run `make golden` and review the diff"
    )


def test_no_golden_is_left_over() -> None:
    there = {path.relative_to(DEVICE_GOLDEN) for path in DEVICE_GOLDEN.glob("*/*.json")}
    assert there == {Path(run, f"{tool}.json") for run, tool in GOLDENS}, "run `make golden`"
