"""Scopes of compiled operations: their time is that of the operations on other pages, step by step."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.flame.scopes import phase_of, scope_nodes
from tb_tpuprof.analysis.flame.selection import selection
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.tree import scope_parts
from tb_tpuprof.session import Session
from tests.golden_files import demo_runs


@pytest.mark.parametrize(
    ("provenance", "phase"),
    [
        ("jit(step)/jvp(loss)/dense/dot_general", "forward"),
        ("jit(step)/transpose(jvp(loss))/dense/dot_general", "backward"),
        ("jit(step)/optimizer/add", "optimizer"),
        ("gradient_tape/model/dense/MatMul:MatMul", "backward"),
        ("jit(f)/add", ""),
    ],
)
def test_phases_by_scope(provenance: str, phase: str) -> None:
    assert phase_of(provenance) == phase


def test_scopes_add_up_to_the_operations() -> None:
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    trace = session.trace(session.hosts[0])
    everything, steps = selection(trace, "trace"), selection(trace, "all")
    assert everything is not None
    assert steps is not None
    nodes = scope_nodes(trace, [everything.windows, steps.windows])
    ops = hlo_ops(trace)
    roots = [node for node in nodes if node.parent < 0]
    assert sum(node.total_ps[0] for node in roots) == int(ops.self_ps.sum())
    assert 0 < sum(node.total_ps[1] for node in roots) < sum(node.total_ps[0] for node in roots)
    for i, node in enumerate(nodes):
        below = [one for one in nodes if one.parent == i]
        for k in range(2):
            assert node.total_ps[k] == node.own_ps[k] + sum(one.total_ps[k] for one in below)
    # The deepest path is an operation's provenance, then the operation.
    row = int(np.argmax(ops.self_ps))
    path = [ops.programs[int(ops.program[row])], *scope_parts(ops.provenance[row]), ops.name[row]]
    at = -1
    for name in path:
        (at,) = [i for i, node in enumerate(nodes) if node.parent == at and node.name == name]
    assert nodes[at].own_ps[0] == int(ops.self_ps[row])
    assert nodes[at].calls[0] == int(ops.n_occurrences[row])
