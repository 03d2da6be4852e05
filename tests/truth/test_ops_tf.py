"""Framework operations of TensorFlow on a CPU against loops timed from outside: each product alone in a `tf.function`."""

from __future__ import annotations

from typing import Any

from tb_tpuprof.tools import framework_op_stats
from tests.conformance.live_devices import table
from tests.truth.runner import profiled

# Of a loop the product is most, but the copy of its result, Python and (in a function) its call are in the loop, too.
LEAST, MOST = 0.25, 1.02


def products() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    truth = profiled("ops_tf.py", packages=("tensorflow",))
    rows = table(framework_op_stats.TOOL.run(truth.session(), None, {}).tables["ops"])
    return dict(truth.facts), [row for row in rows if str(row["type"]).endswith("MatMul")]


def test_products_in_functions_take_what_their_loops_took() -> None:
    facts, rows = products()
    found = {row["operation"]: row for row in rows}
    assert set(found) == set(facts)
    for name, fact in facts.items():
        assert found[name]["eager"] == "Function"
        share = found[name]["total_time_ps"] / 1e12 / fact["seconds"]
        assert LEAST < share < MOST, name
