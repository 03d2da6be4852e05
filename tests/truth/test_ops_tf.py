"""Framework operations of TensorFlow on a CPU against loops timed from outside: in functions of their own,
and run eagerly.
"""

from __future__ import annotations

from typing import Any

import pytest

from tb_tpuprof.tools.framework_op_stats import view as framework_op_stats
from tests.conformance.live_devices import table
from tests.truth.runner import profiled

# Of a call the operation is most, but Python, dispatch and the copy of the result are in it, too. The fastest
# call counts: on a busy machine a loop's time between its operations has no bound.
LEAST = 0.5

pytestmark = pytest.mark.slow


def operations(mode: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    truth = profiled("ops_tf.py", mode, packages=("tensorflow",))
    rows = table(framework_op_stats.TOOL.run(truth.session(), None, {}).tables["ops"])
    return dict(truth.facts), {row["operation"]: row for row in rows}


@pytest.mark.parametrize(("mode", "shown"), [("function", "Function"), ("eager", "Eager")])
def test_operations_ran_as_often_and_as_long_as_their_loops(mode: str, shown: str) -> None:
    facts, found = operations(mode)
    assert set(found) == set(facts)
    for name, fact in facts.items():
        row = found[name]
        assert (row["n_occurrences"], row["eager"]) == (fact["times"], shown), name
        assert (
            LEAST * fact["fastest_call_s"] * fact["times"] < row["total_time_ps"] / 1e12 <= fact["seconds"]
        ), name
        assert row["total_self_time_ps"] == row["total_time_ps"], name
    by_loop = sorted(facts, key=lambda name: -float(facts[name]["seconds"]))
    assert sorted(facts, key=lambda name: -found[name]["total_time_ps"]) == by_loop
    assert sorted(facts, key=lambda name: found[name]["rank"]) == by_loop


def test_types_are_those_of_the_operations() -> None:
    _, found = operations("eager")
    assert {name: row["type"] for name, row in found.items()} == {
        "MatMul": "MatMul",
        "Softmax": "Softmax",
        "Relu": "Relu",
    }
    _, found = operations("function")
    assert {str(row["type"]).removeprefix("_Mkl") for row in found.values()} == {"MatMul"}
