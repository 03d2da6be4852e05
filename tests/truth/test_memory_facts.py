"""The memory viewer against `memory_analysis()`: what XLA itself says of the programs that it compiled."""

from __future__ import annotations

from typing import Any

import pytest

from tb_tpuprof.tools.memory_viewer import view as memory_viewer
from tests.truth.runner import Truth, profiled

WORD = 64  # XLA:CPU aligns what it allocates
pytestmark = pytest.mark.slow


def shown(truth: Truth, name: str) -> dict[str, Any]:
    """Scalars of the memory viewer for one of the programs."""
    session = truth.session()
    (title,) = [
        program.title
        for program in session.outline(session.hosts[0]).programs
        if program.name == f"jit_{name}"
    ]
    payload = memory_viewer.TOOL.run(session, None, {"program": title})
    return {key: scalar.value for key, scalar in payload.scalars.items()}


@pytest.mark.parametrize("name", ["plain", "donating", "busy"])
def test_kinds_of_memory_are_those_that_xla_states(name: str) -> None:
    truth = profiled("memory_jax.py")
    stated, found = truth.facts[name], shown(truth, name)
    assert stated["parameters"] > 100_000
    assert found["parameter_bytes"] == stated["parameters"]
    assert found["output_bytes"] == stated["results"] - stated["shared"]
    assert found["temporary_allocated_bytes"] == pytest.approx(stated["temporaries"], abs=WORD)
    in_all = stated["parameters"] + found["output_bytes"] + stated["temporaries"]
    assert (
        found["parameter_bytes"] + found["temporary_bytes"]
        <= found["peak_bytes"]
        <= in_all + found["constant_bytes"] + WORD
    )


def test_a_result_in_a_donated_parameter_s_memory_is_no_second_buffer() -> None:
    truth = profiled("memory_jax.py")
    n_bytes = 700 * 700 * 4
    assert truth.facts["donating"]["shared"] == n_bytes
    found = shown(truth, "donating")
    assert (found["parameter_bytes"], found["output_bytes"]) == (n_bytes, 0)
    assert found["peak_bytes"] == pytest.approx(n_bytes, abs=WORD)
    assert shown(truth, "plain")["output_bytes"] == 300 * 300 * 4
