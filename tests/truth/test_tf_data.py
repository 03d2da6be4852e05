"""A handful of random tf.data pipelines, really run. The whole evaluation is `make truth`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.truth.tf_data_evaluation import Answer, answer, generated, table

SEED = 11
CASES = 3


@cache
def answers() -> tuple[Answer, ...]:
    """Three pipelines with sleeping functions: their stages do not depend on how busy the machine is."""
    out = Path(mkdtemp(prefix="truth_tf_data_"))
    return tuple(answer(out, case) for case in generated(out, SEED, CASES))


@pytest.mark.slow
def test_the_planted_stage_of_generated_pipelines_is_named() -> None:
    judged = [one for one in answers() if one.is_named is not None]
    assert judged
    assert all(one.is_named for one in judged), [one.text for one in answers()]


@pytest.mark.slow
def test_the_share_of_waiting_is_the_measured_one() -> None:
    wrong = [one.text for one in answers() if not one.has_verdict]
    assert not wrong


def test_the_evaluation_counts_what_was_not_quiet_apart() -> None:
    quiet = Answer("a", True, True, True, None, "", 0.1, True, "")
    noisy = Answer("b", False, False, False, True, "", 0.9, False, "")
    text = table("Set", [quiet, noisy])
    assert "2, of these 1 not quiet" in text
    assert "1 of 1 (100%)" in text
    assert "10.0%" in text


@pytest.mark.slow
def test_a_set_depends_on_its_seed_alone() -> None:
    (again,) = generated(Path(mkdtemp(prefix="truth_tf_data_")), SEED, 1)
    assert again["name"] == answers()[0].name
