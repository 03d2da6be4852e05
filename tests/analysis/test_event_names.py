import numpy as np
import pytest

from tb_tpuprof.analysis.events import names as event_names
from tb_tpuprof.analysis.events.names import Op, hlo_op_type, is_explicit_step, parse_op
from tb_tpuprof.analysis.events.stat_rows import events_of
from tb_tpuprof.session import Session
from tests.golden_files import demo_runs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("scope/dense/MatMul:MatMul", Op("scope/dense/MatMul", "MatMul", event_names.TENSORFLOW)),
        ("jit(f)/dot_general:dot_general", Op("jit(f)/dot_general", "dot_general", event_names.JAX)),
        (
            "jit(f)/transpose[permutation=(1, 0)]:",
            Op("jit(f)/transpose[permutation=(1, 0)]", "transpose", event_names.JAX),
        ),
        ("jit(f)/add_1:", Op("jit(f)/add_1", "add", event_names.JAX)),
        ("model/Add_1:", Op("model/Add_1", "Add", event_names.TENSORFLOW)),
        (
            "jit(f)/aten::mean.dim/reduce_sum:",
            Op("jit(f)/aten::mean.dim/reduce_sum", "reduce_sum", event_names.JAX),
        ),
        ("jit(f)/aten::add.Tensor/x:add", Op("jit(f)/aten::add.Tensor/x", "add", event_names.JAX)),
        ("jit(f)/aten::mean", Op("jit(f)/aten::mean", "")),
        ("Iterator::Root::Map", Op("Iterator::Root::Map", "Dataset", event_names.TF_DATA)),
        ("MemcpyHtoD", Op("MemcpyHtoD", "MemcpyHToD", event_names.MEMCPY)),
        ("ExecutorState::Process", Op("ExecutorState::Process", "")),
        ("PjitFunction(step)", Op("PjitFunction(step)", "")),
        ("$file.py:12 function", Op("$file.py:12 function", "")),
        ("", Op("", "")),
    ],
)
def test_a_name_is_an_operation_or_is_not(text: str, expected: Op) -> None:
    assert parse_op(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("dot.12", "dot"), ("loop_fusion.3.clone", "loop_fusion"), ("copy", "copy"), (".1", ".1")],
)
def test_kind_of_an_instruction_is_its_name_without_number(name: str, expected: str) -> None:
    assert hlo_op_type(name) == expected


def test_steps_are_called_train_or_test() -> None:
    assert [
        is_explicit_step(name) for name in ("train", "test_step", "TraceContext", "train/x", "Train", "step")
    ] == [True] * 3 + [False] * 3


@pytest.mark.parametrize("seed", range(3))
def test_events_of_chosen_names(seed: int) -> None:
    session = Session(str(demo_runs()["jax_predict"]), cache=False)
    trace = session.trace(session.hosts[0])
    chosen = np.random.default_rng(seed).random(len(trace.metadata)) < (0, 0.1, 0.9)[seed]
    rows = [row for row, name in enumerate(trace.events["metadata"].tolist()) if chosen[name]]
    assert events_of(trace, chosen).tolist() == rows
    assert bool(rows) is (seed > 0)
